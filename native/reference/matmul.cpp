// Frozen linears.  x [R, K], W [N, K] packed in panels [N / 32][K][32], y [R, N]
//
//   forward    y [r][n]  = Σ_k x [r][k] W[n][k]   one chain over k ascending from 0; then + bias[n]; then, accumulating, y + that
//   backward   dx[r][k]  = Σ_n dy[r][n] W[n][k]   one chain over n ascending from 0; then, accumulating, dx + that
//
// The forward pass vectorises over n as the panels lie. The backward pass reads the same panels as its left factor and vectorises over 32 rows, from a
// transposed copy of their dy.
#include <algorithm>
#include <cstring>

#include "reference/reference_backend.h"
#include "reference/panels.h"

namespace cg::reference {

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
  multiply_panels(threads_, x, w, [&](int64_t row, int64_t column, int64_t count, const float* sums) CG_INLINE_LAMBDA {
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

void ReferenceBackend::product_backward(const View<float>& dy, const Packed& w, bool accumulate, const View<float>& dx) {
  constexpr int64_t depth = 512;  // of dy transposed at a time
  const int64_t inputs = 256;     // of dx at a time
  const int64_t row_blocks = (dy.n0 + 31) / 32, input_blocks = (w.k + inputs - 1) / inputs;
  threads_.run(row_blocks * input_blocks, 1, 2.0 * double(dy.n0 * dy.n2 * w.k), [&](int64_t begin, int64_t end) {
    float* transposed = scratch(0, depth * 32);
    float* sums = scratch(1, inputs * 32);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t r0 = task / input_blocks * 32, rows = std::min<int64_t>(32, dy.n0 - r0);
      const int64_t k0 = task % input_blocks * inputs, width = std::min(inputs, w.k - k0);
      for_isa([&](auto isa) CG_INLINE_LAMBDA {
        std::memset(sums, 0, size_t(width) * 32 * 4);
        for (int64_t n0 = 0; n0 < dy.n2; n0 += depth) {
          const int64_t n = std::min(depth, dy.n2 - n0);
          transpose_rows(dy.row(r0) + n0, dy.s0, rows, n, transposed);
          for (int64_t p = 0; p * 32 < n; ++p) {
            const float* panel = w.panel(n0 / 32 + p) + k0 * 32;
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
