// One pass of a step: some rollouts of a group as one trie, from tokens to coefficients.
#pragma once

#include <span>

#include "core/trainer.h"

namespace cg {

/// Sums over loss tokens that StepStats are made of.
struct StepSums {
  LossSums loss;
  double entropy = 0;
  double mismatch_kl = 0, mult_prob = 0, mismatch_max = 0;
  int64_t tokens = 0, unique_tokens = 0, loss_tokens = 0, with_old = 0;
  bool finite = true;
  int64_t plan_bytes = 0;  // of the largest pass, and what it kept
  Keep kept = Keep::nothing;
};

/// Rollouts of a group that go through the model together: greedily in order, while the trie has at most max_rows rows. Rollouts without loss tokens are left
/// out.
std::vector<std::vector<const TrainSequence*>> split_group(const TrainGroup&, int64_t max_rows);

/// Runs the pass forward with what is trained (and, where KL needs it, with the reference) and returns c = d loss / d logp per loss token, computed in double
/// and rounded once.
std::vector<float> pass_coefficients(TriePass&, std::span<const TrainSequence* const>, const StepRequest&, const Trainee&, bool train, StepSums*);

}  // namespace cg
