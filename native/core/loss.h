// Losses as coefficients: every loss of formulas.md §3 is a function of the loss tokens' log-probs, and what the model needs of it is c_i = d loss / d logp_i.
//
// Pure functions in double. One rollout at a time: denominators are those of the whole optimiser step, so a rollout's part does not depend on the others.
#pragma once

#include <cstdint>
#include <span>

namespace cg {

enum class Aggregation { grpo, bnpo, dr_grpo, dapo, gspo, cispo };

struct PolicyLoss {
  Aggregation aggregation = Aggregation::grpo;
  double epsilon_low = 0.2, epsilon_high = 0.2;
  double cispo_cap = 5;              // cispo: ρ is capped here (TRL's epsilon_high)
  double kl = 0;                     // β of k3
  bool kl_bias_correction = false;   // β · ρ · k3, gradient through ρ too (TRL 1.16's default)
  double max_completion_length = 1;  // dr_grpo's denominator is rollouts × this
};

/// Of the whole optimiser step, whatever is computed together.
struct Denominators {
  double rollouts = 1;
  double tokens = 1;
};

/// Loss tokens of one rollout; all spans have the same length n, `reference` may be empty when kl is 0.
struct RolloutTerms {
  std::span<const double> current, old, reference, advantage;
};

/// Sums over the loss tokens of a rollout, to be added over rollouts.
struct LossSums {
  double loss = 0;
  double k3 = 0;       // Σ exp(ref − cur) − (ref − cur) − 1
  double clipped = 0;  // tokens whose ratio is cut, so that the policy term has no gradient (cispo: whose weight is capped)

  void add(const LossSums& other) { loss += other.loss, k3 += other.k3, clipped += other.clipped; }
};

/// A clipped policy loss and its derivative by every current log-prob, written to coefficient [n].
///
/// ρ = exp(cur − old); per token −min(ρA, clip(ρ, 1 − ε_low, 1 + ε_high) A) + β k3, k3 = exp(ref − cur) − (ref − cur) − 1 (GRPO: arXiv 2402.03300, eq. 3 and
/// 4). grpo: mean over the step's rollouts of the mean over their loss tokens. bnpo, dapo (arXiv 2503.14476): mean over the step's tokens. dr_grpo (arXiv
/// 2503.20783): sum / (rollouts · max_completion_length). gspo (arXiv 2507.18071): as grpo with the one ratio exp(mean(cur − old)). cispo (arXiv 2506.13585):
/// −min(ρ, cap) A logp with the factor detached, over the step's tokens. A rollout without loss tokens counts as 0 in the mean.
LossSums policy_loss(const PolicyLoss&, const Denominators&, const RolloutTerms&, std::span<double> coefficient);

/// SFT and advantage-weighted likelihood: −(1/B) (1/n) Σ w_i logp_i, so c_i = −w_i / (n B) (formulas.md §2.4).
LossSums weighted_loss(const Denominators&, std::span<const double> current, std::span<const double> weight, std::span<double> coefficient);

}  // namespace cg
