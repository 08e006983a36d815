// The language-model head in row chunks: logits live in the workspace, and the log-prob of an entry is made here and nowhere else, for the sampler and the
// trainer.
#pragma once

#include <algorithm>

#include "reference/reference_backend.h"
#include "reference/vector_math.h"

namespace cg::reference {

/// Rows of logits kept at a time: 64 for large vocabularies, more for small ones.
constexpr int64_t head_chunk(int64_t rows, int64_t vocab) { return std::max<int64_t>(1, std::min(rows, std::max<int64_t>(64, (int64_t{1} << 19) / vocab))); }

/// m + ln Σ exp(z − m) with z[j] = logits[j] / T, m = max z; the sum in 32 lanes. `weight` [V] becomes exp(z − m), `sum` its sum.
struct LogSum {
  float top, sum, lse;
};
CG_INLINE LogSum log_sum_exp(const float* logits, int64_t vocab, float temperature, float* weight) {
  for (int64_t j = 0; j < vocab; ++j) weight[j] = logits[j] / temperature;
  const float top = max_of(weight, vocab);
  for (int64_t j = 0; j < vocab; ++j) weight[j] = exp_f(weight[j] - top);
  const float sum = sum_of(vocab, [&](int64_t j) CG_INLINE_LAMBDA { return weight[j]; });
  return {top, sum, top + log_f(sum)};
}

/// Rows [begin, end) of x.
inline View<float> rows_of(const View<float>& x, int64_t begin, int64_t end) { return {x.row(begin), end - begin, 1, x.n2, x.s0, x.n2}; }

/// A dense [rows, columns].
inline View<float> dense(float* data, int64_t rows, int64_t columns) { return {data, rows, 1, columns, columns, columns}; }

}  // namespace cg::reference
