// Rotary positions (Su et al. 2021, equation 34), pairs (j, j + D/2) as in published Qwen and Llama checkpoints.
//
//   x, y [R, heads, D]   position [R]   cos, sin [P, D/2], made by core in double and rounded once
//
//   y[j] = x[j] · cos − x[j + D/2] · sin      y[j + D/2] = x[j + D/2] · cos + x[j] · sin      inverse: −sin
#include "reference/reference_backend.h"

namespace cg::reference {

void ReferenceBackend::rope(Queue& queue, Tensor x_t, Tensor position_t, Tensor cos_t, Tensor sin_t, Tensor y_t, bool inverse) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), y = view<float>(y_t), cos = view<float>(cos_t), sin = view<float>(sin_t);
    const auto position = view<int32_t>(position_t);
    const int64_t half = x.n2 / 2;
    CG_INVARIANT(x.n0 == y.n0 && x.n1 == y.n1 && x.n2 == y.n2 && x.n0 == position.n0);
    if (x.n0 == 0) return;
    CG_INVARIANT(x.n2 % 2 == 0 && cos.n2 == half && sin.n2 == half && cos.n0 == sin.n0);
    check_index(position, cos.n0, "position");
    threads_.run(x.n0, 32, 6.0 * double(x.n0 * x.n1 * x.n2), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t i = begin; i < end; ++i) {
          const float *c = cos.row(position.data[i]), *s = sin.row(position.data[i]);
          const float sign = inverse ? -1.0f : 1.0f;
          for (int64_t h = 0; h < x.n1; ++h) {
            const float* xr = x.row(i, h);
            float* yr = y.row(i, h);
            for (int64_t j = 0; j < half; ++j) {
              const float low = xr[j], high = xr[j + half];
              yr[j] = low * c[j] - high * (sign * s[j]);
              yr[j + half] = high * c[j] + low * (sign * s[j]);
            }
          }
        }
      });
    });
  });
}

}  // namespace cg::reference
