// Sampling parameters and the counter-based random numbers behind them; the cut rules are in sampling_rules.h, one header that every backend compiles.
#pragma once

#include <cstdint>

namespace cg {

/// One row of a SampleRows::params tensor, in this order.
struct SampleParams {
  static constexpr int fields = 6;
  float temperature = 1;         // > 0; 0 is greedy: the most likely id, ties to the lowest, and its log-prob at T = 1
  float top_k = 0;               // 0 is off; every id equal to the k-th is kept
  float top_p = 1;               // 1 is off; an id is kept while the mass before it is below p, at least one
  float min_p = 0;               // 0 is off; relative to the largest probability after the other cuts
  float repetition_penalty = 1;  // 1 is off; divides positive and multiplies negative logits of earlier ids
  float reserved = 0;
};

/// A uniform number in [0, 1) that depends on nothing but its key, so a rollout draws the same whatever it is batched with.
struct SampleKey {
  uint64_t seed, rollout, position;
};

}  // namespace cg
