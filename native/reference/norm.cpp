// RMSNorm: y = x / sqrt(mean(x²) + eps) · w over the last dimension of [R, n] or [R, heads, n], one row at a time (Zhang, Sennrich 2019, equation 4).
//
//   x, y, dy, dx   [R, heads, n]   w [n]   rstd [R · heads] = 1 / sqrt(mean(x²) + eps), kept for the backward pass; may be none
//
// Sums over a row run in 32 lanes (vector_math.h); the gradient of w is a sum over rows: one chain for each block of 256, blocks joined by a binary tree.
#include <algorithm>

#include "reference/reference_backend.h"
#include "reference/vector_math.h"

namespace cg::reference {

void ReferenceBackend::rms_norm(Queue& queue, Tensor x_t, Weight w_id, float eps, Tensor y_t, Tensor rstd_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), y = view<float>(y_t);
    const Packed& weight = packed(w_id);
    CG_INVARIANT(x.n0 == y.n0 && x.n1 == y.n1 && x.n2 == y.n2 && (x.n0 == 0 || x.n2 == weight.n));
    float* rstd = rstd_t ? view<float>(rstd_t).data : nullptr;
    if (rstd) CG_INVARIANT(rstd_t.size() == x.n0 * x.n1);
    const int64_t n = x.n2;
    const float* w = weight.data.get();
    threads_.run(x.n0, 32, 6.0 * double(x.n0 * x.n1 * n), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t h = 0; h < x.n1; ++h) {
            const float* xr = x.row(i, h);
            float* yr = y.row(i, h);
            const float squares = sum_of(n, [&](int64_t j) CG_INLINE_LAMBDA { return xr[j] * xr[j]; });
            const float r = 1 / __builtin_sqrtf(squares / float(n) + eps);
            for (int64_t j = 0; j < n; ++j) yr[j] = xr[j] * r * w[j];
            if (rstd) rstd[i * x.n1 + h] = r;
          }
      });
    });
  });
}

// With g = dy · w and h = x · rstd:  dx (+)= rstd · (g − h · mean(g · h)).
void ReferenceBackend::rms_norm_backward(Queue& queue, Tensor dy_t, Tensor x_t, Weight w_id, Tensor rstd_t, Tensor dx_t, bool accumulate) {
  enqueue(queue, [&] {
    const auto dy = view<float>(dy_t), x = view<float>(x_t), dx = view<float>(dx_t);
    const float* rstd = view<float>(rstd_t).data;
    const Packed& weight = packed(w_id);
    CG_INVARIANT(x.n0 == dy.n0 && x.n1 == dy.n1 && x.n2 == dy.n2 && x.n0 == dx.n0 && x.n1 == dx.n1 && x.n2 == dx.n2 && (x.n0 == 0 || x.n2 == weight.n));
    CG_INVARIANT(rstd_t.size() == x.n0 * x.n1);
    const int64_t n = x.n2;
    const float* w = weight.data.get();
    threads_.run(x.n0, 32, 12.0 * double(x.n0 * x.n1 * n), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t h = 0; h < x.n1; ++h) {
            const float *xr = x.row(i, h), *dyr = dy.row(i, h);
            float* dxr = dx.row(i, h);
            const float r = rstd[i * x.n1 + h];
            const float mean = sum_of(n, [&](int64_t j) CG_INLINE_LAMBDA { return dyr[j] * w[j] * (xr[j] * r); }) / float(n);
            if (accumulate)
              for (int64_t j = 0; j < n; ++j) dxr[j] += r * (dyr[j] * w[j] - xr[j] * r * mean);
            else
              for (int64_t j = 0; j < n; ++j) dxr[j] = r * (dyr[j] * w[j] - xr[j] * r * mean);
          }
      });
    });
  });
}

// dw[j] = Σ dy[i][j] · (x[i][j] · rstd[i]) over all rows and heads i: sum = fma(dy, x · rstd, sum), i ascending within a block of 256.
void ReferenceBackend::rms_norm_weight_gradient(Queue& queue, Tensor dy_t, Tensor x_t, Tensor rstd_t, Tensor dw_t, Tensor workspace_t) {
  enqueue(queue, [&] {
    const auto dy = view<float>(dy_t), x = view<float>(x_t);
    const int64_t rows = x.n0 * x.n1, n = dw_t.size(), leaf = 256, blocks = (rows + leaf - 1) / leaf;
    CG_INVARIANT(x.n0 == dy.n0 && x.n1 == dy.n1 && x.n2 == dy.n2 && rstd_t.size() == rows && (rows == 0 || x.n2 == n));
    float* dw = view<float>(dw_t).data;
    if (rows == 0) return std::fill(dw, dw + n, 0.0f);
    CG_INVARIANT(workspace_t.size() >= blocks * n);
    const float* rstd = view<float>(rstd_t).data;
    float* sums = view<float>(workspace_t).data;
    threads_.run(blocks, 1, 4.0 * double(rows * n), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t block = begin; block < end; ++block) {
          float* sum = sums + block * n;
          for (int64_t j = 0; j < n; ++j) sum[j] = 0;
          for (int64_t i = block * leaf; i < std::min(rows, (block + 1) * leaf); ++i) {
            const float *xr = x.row(i / x.n1, i % x.n1), *dyr = dy.row(i / x.n1, i % x.n1), r = rstd[i];
            for (int64_t j = 0; j < n; ++j) sum[j] = __builtin_fmaf(dyr[j], xr[j] * r, sum[j]);
          }
        }
      });
    });
    for (int64_t step = 1; step < blocks; step *= 2)
      for (int64_t b = 0; b + step < blocks; b += 2 * step)
        for (int64_t j = 0; j < n; ++j) sums[b * n + j] += sums[(b + step) * n + j];
    std::copy(sums, sums + n, dw);
  });
}

}  // namespace cg::reference
