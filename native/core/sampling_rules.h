// Which tokens may be drawn, and which one is: the cuts in the order of transformers' logits processors, then an inverse CDF in the order of ids.
//
//   scores  [V]  logits, then penalised, divided by the temperature, and −∞ where cut
//   weight  [V]  exp(score − largest score), 0 where cut; the caller's exp, so that a backend keeps its own
//   order   [V]  scratch: ids by decreasing score, equal scores by increasing id
//
// A row is handled by one thread in a fixed order, masses are summed in double. Domains and what is "off" are SampleParams'. Plain loops over
// arrays without allocation, so that every backend compiles this file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/sampling.h"

namespace cg {

/// CTRL's repetition penalty (Keskar et al. 2019, section 4.1) as transformers applies it: once per distinct id, division for positive logits, product for
/// negative ones.
inline void apply_penalty(float* scores, const int32_t* seen, int64_t seen_count, float penalty) {
  if (penalty == 1) return;
  for (int64_t i = 0; i < seen_count; ++i) {
    float& x = scores[seen[i]];
    x = x < 0 ? x * penalty : x / penalty;
  }
}

inline void apply_temperature(float* scores, int64_t vocab, float temperature) {
  if (temperature == 1) return;
  for (int64_t j = 0; j < vocab; ++j) scores[j] = scores[j] / temperature;
}

/// The lowest id among those with the largest score.
inline int32_t most_likely(const float* scores, int64_t vocab) {
  int64_t best = 0;
  for (int64_t j = 1; j < vocab; ++j)
    if (scores[j] > scores[best]) best = j;
  return int32_t(best);
}

/// Keeps every id whose score is at least the k-th largest; ids equal to the k-th all stay. `order` is overwritten.
inline void cut_top_k(float* scores, int64_t vocab, float top_k, int32_t* order) {
  const int64_t k = int64_t(top_k);
  if (k <= 0 || k >= vocab) return;
  for (int64_t j = 0; j < vocab; ++j) order[j] = int32_t(j);
  std::nth_element(order, order + (k - 1), order + vocab, [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  const float least = scores[order[k - 1]];
  for (int64_t j = 0; j < vocab; ++j)
    if (scores[j] < least) scores[j] = -std::numeric_limits<float>::infinity();
}

/// Nucleus sampling (Holtzman et al. 2020, section 3.1): an id stays while the mass before it, by decreasing probability, is below p; the first always stays.
/// Sorts only as many ids as the nucleus has, in doubling steps. `order` is overwritten.
inline void cut_top_p(float* scores, float* weight, int64_t vocab, float top_p, int32_t* order) {
  if (top_p >= 1) return;
  double total = 0;
  int64_t count = 0;
  for (int64_t j = 0; j < vocab; ++j) {
    if (scores[j] == -std::numeric_limits<float>::infinity()) continue;
    order[count++] = int32_t(j);
    total += weight[j];
  }
  const auto before = [&](int32_t a, int32_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); };
  double mass = 0;
  int64_t kept = 0, sorted = 0;
  for (bool full = false; !full && kept < count;) {
    if (kept == sorted) {
      const int64_t next = std::min(count, sorted == 0 ? int64_t{64} : 2 * sorted);
      if (next < count) std::nth_element(order + sorted, order + next, order + count, before);
      std::sort(order + sorted, order + next, before);
      sorted = next;
    }
    const double q = weight[order[kept]] / total;
    mass += q;
    full = kept > 0 && mass - q >= top_p;
    if (!full) ++kept;
  }
  for (int64_t i = kept; i < count; ++i) {
    scores[order[i]] = -std::numeric_limits<float>::infinity();
    weight[order[i]] = 0;
  }
}

/// Keeps ids whose probability is at least min_p times the largest one (weight 1) after the other cuts.
inline void cut_min_p(float* scores, float* weight, int64_t vocab, float min_p) {
  if (min_p <= 0) return;
  for (int64_t j = 0; j < vocab; ++j) {
    if (weight[j] >= min_p) continue;
    scores[j] = -std::numeric_limits<float>::infinity();
    weight[j] = 0;
  }
}

/// The id at which the running sum of weights, by increasing id, first exceeds u · total; `uniform` in [0, 1).
inline int32_t draw(const float* weight, int64_t vocab, double uniform) {
  double total = 0;
  for (int64_t j = 0; j < vocab; ++j) total += weight[j];
  const double target = uniform * total;
  double sum = 0;
  int64_t last = 0;
  for (int64_t j = 0; j < vocab; ++j) {
    if (weight[j] == 0) continue;
    sum += weight[j];
    last = j;
    if (sum > target) break;
  }
  return int32_t(last);
}

}  // namespace cg
