#include "core/loss.h"

#include <algorithm>
#include <cmath>

namespace cg {
namespace {

// What one token of a rollout with n loss tokens contributes to the step's loss.
double token_share(const PolicyLoss& loss, const Denominators& d, double n) {
  switch (loss.aggregation) {
    case Aggregation::grpo:
    case Aggregation::gspo: return 1 / std::max(n, 1.0) / d.rollouts;
    case Aggregation::dr_grpo: return 1 / (d.rollouts * loss.max_completion_length);
    case Aggregation::bnpo:
    case Aggregation::dapo:
    case Aggregation::cispo: return 1 / std::max(d.tokens, 1.0);
  }
  return 0;
}

double sequence_ratio(const RolloutTerms& t) {
  double sum = 0;
  for (size_t i = 0; i < t.current.size(); ++i) sum += t.current[i] - t.old[i];
  return std::exp(sum / static_cast<double>(t.current.size()));
}

}  // namespace

LossSums policy_loss(const PolicyLoss& loss, const Denominators& denominators, const RolloutTerms& t, std::span<double> coefficient) {
  LossSums sums;
  const size_t n = t.current.size();
  if (n == 0) return sums;
  const double share = token_share(loss, denominators, static_cast<double>(n));
  const bool by_sequence = loss.aggregation == Aggregation::gspo;
  const double sequence = by_sequence ? sequence_ratio(t) : 0;
  double spread = 0;  // gspo: derivative by the mean of cur − old, shared by all tokens in the end

  for (size_t i = 0; i < n; ++i) {
    const double a = t.advantage[i];
    const double ratio = by_sequence ? sequence : std::exp(t.current[i] - t.old[i]);
    double c = 0;        // by this token's own log-prob
    double through = 0;  // by log ratio
    if (loss.aggregation == Aggregation::cispo) {
      const double factor = std::min(ratio, loss.cispo_cap);
      sums.loss += share * -factor * a * t.current[i];
      sums.clipped += ratio > loss.cispo_cap;
      c += share * -factor * a;
    } else {
      const double cut = std::clamp(ratio, 1 - loss.epsilon_low, 1 + loss.epsilon_high);
      sums.loss += share * -std::min(ratio * a, cut * a);
      if (ratio * a <= cut * a) through += share * -a * ratio;
      sums.clipped += ratio * a > cut * a;
    }
    if (!t.reference.empty()) {
      const double d = t.reference[i] - t.current[i];
      const double k3 = std::exp(d) - d - 1;
      sums.k3 += k3;
      if (loss.kl != 0) {
        const double factor = loss.kl_bias_correction ? ratio : 1;
        sums.loss += share * loss.kl * factor * k3;
        c += share * loss.kl * factor * (1 - std::exp(d));
        if (loss.kl_bias_correction) through += share * loss.kl * k3 * ratio;
      }
    }
    if (by_sequence) spread += through;
    else c += through;
    coefficient[i] = c;
  }
  if (by_sequence)
    for (size_t i = 0; i < n; ++i) coefficient[i] += spread / static_cast<double>(n);
  return sums;
}

LossSums weighted_loss(const Denominators& denominators, std::span<const double> current, std::span<const double> weight, std::span<double> coefficient) {
  LossSums sums;
  const double share = 1 / std::max(static_cast<double>(current.size()), 1.0) / denominators.rollouts;
  for (size_t i = 0; i < current.size(); ++i) {
    coefficient[i] = -share * weight[i];
    sums.loss += coefficient[i] * current[i];
  }
  return sums;
}

}  // namespace cg
