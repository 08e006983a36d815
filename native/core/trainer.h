// Optimiser steps on an adapter or on all weights of a model.
//
// A step is a set of groups. A group is one trie and one leaf of the gradient's reduction tree, so the bits of a step depend on its groups and their indices
// alone: not on the order they are listed in, on threads, or on what else runs. A group of more than max_rows rows is split after whole rollouts into several
// passes, summed in order.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/loss.h"
#include "core/optimizer.h"
#include "core/reduce.h"
#include "core/trie_pass.h"

namespace cg {

/// A sequence with what its loss needs. Per loss token: old, reference (either may be empty); per span: advantage, weight (empty: 1).
struct TrainSequence {
  Sequence sequence;
  std::vector<float> old, reference;
  std::vector<float> advantage, weight;
};

struct TrainGroup {
  int64_t index = 0;
  std::vector<TrainSequence> sequences;
};

struct StepRequest {
  std::vector<TrainGroup> groups;
  bool policy = false;  // else weighted likelihood
  PolicyLoss loss;
  Denominators denominators;
  std::shared_ptr<const Adapter> kl_adapter;  // reference policy where a sequence brings no reference log-probs; null: the base model
  double lr = 0, clip = 0;
  int64_t max_rows = 0;
  int64_t memory_budget = 0;  // bytes of a pass: what fits is kept for the backward pass, the rest computed again
};

struct StepStats {
  double loss = 0;
  double kl = 0;             // mean k3 to the reference over loss tokens, 0 without one
  double entropy = 0;        // mean over loss tokens, nats, at the rollout's temperature
  double clip_fraction = 0;  // share of loss tokens whose ratio is cut
  double grad_norm = 0;
  int64_t tokens = 0, unique_tokens = 0, loss_tokens = 0;
  // The sampler's log-probs against ours, over tokens that came with one: mean exp(d) − d − 1 and mean exp|d| with d = current − old, and the largest |d|.
  double mismatch_kl = 0, mult_prob_error = 1, mismatch_max = 0;
  bool skipped = false;
  int64_t pass_bytes = 0;      // of the largest pass, and what it kept for the backward pass
  Keep kept = Keep::nothing;
};

class Trainer {
 public:
  Trainer(std::shared_ptr<Trainee>, const OptimizerOptions&);

  const std::shared_ptr<Trainee>& trained() const { return trained_; }
  int64_t step() const { return state_.step; }

  /// One update. NaN or infinity in loss or gradient: nothing changes and `skipped` says so. Throws E_SHAPE, E_VOCABULARY, E_CONTEXT for a bad request,
  /// E_CANCELLED (nothing changed) once `*cancel` is set.
  StepStats train(const StepRequest&, const std::atomic<bool>* cancel);
  /// Loss and statistics without gradient.
  StepStats evaluate(const StepRequest&, const std::atomic<bool>* cancel);
  /// Loss, statistics and the flat gradient before clipping; updates nothing.
  StepStats gradient(const StepRequest&, std::vector<float>* flat, const std::atomic<bool>* cancel);

  /// A copy of the adapter between two updates. Throws E_ADAPTER when a whole model is trained.
  std::shared_ptr<Adapter> snapshot();

  /// m, v and the step count as one safetensors file, with the values themselves where what is stored of them is rounded. Throws E_STATE when a file is another
  /// adapter's or model's.
  void save_state(const std::string& path);
  void load_state(const std::string& path);

 private:
  std::unique_ptr<FlatSpan> run(const StepRequest&, bool with_gradient, StepStats*, const std::atomic<bool>* cancel);

  std::shared_ptr<Trainee> trained_;
  OptimizerOptions options_;
  OptimizerState state_;
  TriePass pass_;
  TreeSum sum_;
  std::mutex mutex_;
};

}  // namespace cg
