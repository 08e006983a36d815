// The language-model head in row chunks: logits live in the workspace, and the log-prob of an entry is made here and nowhere else, for the sampler and the
// trainer.
#pragma once

#include <algorithm>

#include "reference/panels.h"
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

/// Logits [chunk][real_vocab, rounded up to the row stride] of rows [begin, end) of h.
inline void head_logits(Threads& threads, const View<float>& h, int64_t begin, int64_t end, const Packed& head, int64_t real_vocab, float* logits) {
  const View<float> rows{h.row(begin), end - begin, 1, h.n2, h.s0, h.n2};
  multiply_panels(threads, rows, head, [&](int64_t row, int64_t column, int64_t count, const float* sums) CG_INLINE_LAMBDA {
    float* to = logits + row * real_vocab + column;
    for (int64_t j = 0; j < std::min(count, real_vocab - column); ++j) to[j] = sums[j];
  });
}

}  // namespace cg::reference
