// Frozen linears.  x [R, K], W [N, K] packed in panels [N / 32][K][32], y [R, N]
//
//   forward    y [r][n]  = Σ_k x [r][k] W[n][k]   one chain over k ascending from 0; then + bias[n]; then, accumulating, y + that
//   backward   dx[r][k]  = Σ_n dy[r][n] W[n][k]   one chain over n ascending from 0; then, accumulating, dx + that
//
// In bf16, x (dy) is rounded to bf16, as W was when it was packed, and a chain takes the odd one of each pair of k (n) first: 1, 0, 3, 2, …, an odd number of
// them filled up with a zero. Denormals are flushed throughout, bias and accumulation included. The same tiles run, on copies in that order.
//
// The forward pass vectorises over n as the panels lie. The backward pass reads the same panels as its left factor and vectorises over 32 rows, from a
// transposed copy of their dy.
#include <algorithm>
#include <cstring>

#include "core/dtype.h"
#include "reference/panels.h"
#include "reference/reference_backend.h"

namespace cg::reference {

namespace {

/// x [R, n] rounded to bf16, each pair the odd one first: [R, n + n mod 2] in the caller's scratch.
View<float> rounded_pairs(const View<float>& x) {
  const int64_t depth = round_up(x.n2, 2);
  float* to = scratch(3, x.n0 * depth);
  for (int64_t r = 0; r < x.n0; ++r) {
    float* row = to + r * depth;
    if (depth > x.n2) row[depth - 2] = 0;
    for (int64_t i = 0; i < x.n2; ++i) row[i ^ 1] = widen_bf16(round_to_bf16(x.row(r)[i]));
  }
  return {to, x.n0, 1, depth, depth, depth};
}

/// Inputs k0 … k0 + width − 1 of panel p, [width][32], its outputs in pairs too; those from `outputs` on are zero.
const float* paired_panel(const Packed& w, int64_t p, int64_t k0, int64_t width, int64_t outputs, float* to) {
  for (int64_t k = 0; k < width; ++k) {
    const float* from = w.panel(p) + ((k0 + k) ^ 1) * 32;
    for (int64_t n = 0; n < 32; ++n) to[k * 32 + (n ^ 1)] = p * 32 + n < outputs ? from[n] : 0;
  }
  return to;
}

}  // namespace

void ReferenceBackend::matmul(Queue& queue, Tensor x_t, Weight w_id, Weight bias_id, Tensor y_t, bool accumulate, Tensor) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), y = view<float>(y_t);
    const Packed& w = packed(w_id);
    const float* bias = bias_id ? packed(bias_id).data.get() : nullptr;
    if (x.n0 == 0) { CG_INVARIANT(y.n0 == 0); return; }
    CG_INVARIANT(x.n0 == y.n0 && x.n2 == w.k && y.n2 == w.n && (!bias || packed(bias_id).n == w.n));
    product(x, w, bias, accumulate, y);
  });
}

void ReferenceBackend::product(const View<float>& x, const Packed& w, const float* bias, bool accumulate, const View<float>& y) {
  multiply_panels(threads_, w.pairs ? rounded_pairs(x) : x, w, [&](int64_t row, int64_t column, int64_t count, const float* sums) CG_INLINE_LAMBDA {
    float* to = y.row(row) + column;
    for (int64_t j = 0; j < std::min(count, y.n2 - column); ++j) {
      const float value = bias ? sums[j] + bias[column + j] : sums[j];
      to[j] = accumulate ? to[j] + value : value;
    }
  });
}

void ReferenceBackend::matmul_backward(Queue& queue, Tensor dy_t, Weight w_id, Tensor dx_t, bool accumulate, Tensor) {
  enqueue(queue, [&] {
    const auto dy = view<float>(dy_t), dx = view<float>(dx_t);
    const Packed& w = packed(w_id);
    if (dy.n0 == 0) { CG_INVARIANT(dx.n0 == 0); return; }
    CG_INVARIANT(dy.n0 == dx.n0 && dy.n2 == w.n && dx.n2 == w.k);
    product_backward(dy, w, accumulate, dx);
  });
}

void ReferenceBackend::product_backward(const View<float>& exact, const Packed& w, bool accumulate, const View<float>& dx) {
  const View<float> dy = w.pairs ? rounded_pairs(exact) : exact;
  constexpr int64_t depth = 512;  // of dy transposed at a time
  const int64_t inputs = 256;     // of dx at a time
  const int64_t row_blocks = (dy.n0 + 31) / 32, input_blocks = (w.k + inputs - 1) / inputs;
  threads_.run(row_blocks * input_blocks, 1, 2.0 * double(dy.n0 * dy.n2 * w.k), [&](int64_t begin, int64_t end) {
    float* transposed = scratch(0, depth * 32);
    float* sums = scratch(1, inputs * 32);
    float* paired = scratch(2, inputs * 32);
    std::optional<FlushDenormals> flush;
    if (w.pairs) flush.emplace();
    for (int64_t task = begin; task < end; ++task) {
      const int64_t r0 = task / input_blocks * 32, rows = std::min<int64_t>(32, dy.n0 - r0);
      const int64_t k0 = task % input_blocks * inputs, width = std::min(inputs, w.k - k0);
      for_isa([&](auto isa) CG_INLINE_LAMBDA {
        std::memset(sums, 0, size_t(width) * 32 * 4);
        for (int64_t n0 = 0; n0 < dy.n2; n0 += depth) {
          const int64_t n = std::min(depth, dy.n2 - n0);
          transpose_rows(dy.row(r0) + n0, dy.s0, rows, n, transposed);
          for (int64_t p = 0; p * 32 < n; ++p) {
            const float* panel = w.pairs ? paired_panel(w, n0 / 32 + p, k0, width, exact.n2, paired) : w.panel(n0 / 32 + p) + k0 * 32;
            tiles<Chain::go_on, 32>(isa, width, panel, 32, 1, Dense{transposed + p * 32 * 32, 32}, std::min<int64_t>(32, n - p * 32), sums, 32);
          }
        }
        for (int64_t r = 0; r < rows; ++r) {
          float* to = dx.row(r0 + r) + k0;
          if (accumulate)
            for (int64_t k = 0; k < width; ++k) to[k] += sums[k * 32 + r];
          else
            for (int64_t k = 0; k < width; ++k) to[k] = sums[k * 32 + r];
        }
      });
    }
  });
}

}  // namespace cg::reference
