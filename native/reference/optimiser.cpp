// AdamW and what it needs, on flat fp32 spans.
#include <cmath>

#include "reference/reference_backend.h"
#include "reference/tile.h"
#include "reference/vector_math.h"

namespace cg::reference {

namespace {
constexpr int64_t leaf = 4096;

View<float> flat(const View<float>& x) {
  CG_INVARIANT(x.n1 == 1 && (x.n2 == 1 || x.n0 <= 1 || x.s0 == x.n2));
  return {x.data, x.n0 * x.n2, 1, 1, 1, 1};
}
}  // namespace

void ReferenceBackend::scale(Queue& queue, Tensor x_t, float factor) {
  enqueue(queue, [&] {
    const auto x = flat(view<float>(x_t));
    for (int64_t i = 0; i < x.n0; ++i) x.data[i] *= factor;
  });
}

// Σ x²: blocks of 4096 in 32 lanes each, joined by a binary tree over blocks (i += i + 1, then i += i + 2, …).
void ReferenceBackend::sum_squares(Queue& queue, Tensor x_t, Tensor out_t, Tensor workspace_t) {
  enqueue(queue, [&] {
    const auto x = flat(view<float>(x_t));
    const int64_t blocks = (x.n0 + leaf - 1) / leaf;
    float* out = view<float>(out_t).data;
    if (blocks == 0) { *out = 0; return; }
    CG_INVARIANT(workspace_t.size() >= blocks);
    float* sums = view<float>(workspace_t).data;
    threads_.run(blocks, 16, 2.0 * double(x.n0), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t b = begin; b < end; ++b) {
          const float* at = x.data + b * leaf;
          sums[b] = sum_of(std::min(leaf, x.n0 - b * leaf), [&](int64_t j) CG_INLINE_LAMBDA { return at[j] * at[j]; });
        }
      });
    });
    for (int64_t step = 1; step < blocks; step *= 2)
      for (int64_t b = 0; b + step < blocks; b += 2 * step) sums[b] += sums[b + step];
    *out = sums[0];
  });
}

// AdamW (Loshchilov, Hutter 2019, algorithm 2, with the learning rate inside the decay as in torch.optim.AdamW):
//   g = grad_scale · g    p = p · (1 − lr · wd)    m = β1 m + (1 − β1) g    v = β2 v + (1 − β2) g²
//   p = p − lr / (1 − β1^t) · m / (√v / √(1 − β2^t) + eps)
// Constants are made in double and rounded once.
void ReferenceBackend::adamw(Queue& queue, const AdamW& o, Tensor p_t, Tensor g_t, Tensor m_t, Tensor v_t) {
  enqueue(queue, [&] {
    const auto p = flat(view<float>(p_t)), g = flat(view<float>(g_t)), m = flat(view<float>(m_t)), v = flat(view<float>(v_t));
    CG_INVARIANT(p.n0 == g.n0 && p.n0 == m.n0 && p.n0 == v.n0 && o.step >= 1);
    const float decay = float(1 - o.lr * o.weight_decay), step_size = float(o.lr / (1 - std::pow(o.beta1, double(o.step))));
    const float root = float(std::sqrt(1 - std::pow(o.beta2, double(o.step)))), eps = float(o.eps), grad_scale = float(o.grad_scale);
    const float beta1 = float(o.beta1), rest1 = float(1 - o.beta1), beta2 = float(o.beta2), rest2 = float(1 - o.beta2);
    threads_.run(p.n0, leaf, 20.0 * double(p.n0), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        float *pp = p.data, *mm = m.data, *vv = v.data;
        const float* gg = g.data;
        for (int64_t i = begin; i < end; ++i) {
          const float gi = gg[i] * grad_scale;
          const float mi = beta1 * mm[i] + rest1 * gi, vi = beta2 * vv[i] + rest2 * (gi * gi);
          mm[i] = mi;
          vv[i] = vi;
          pp[i] = pp[i] * decay - step_size * (mi / (__builtin_sqrtf(vi) / root + eps));
        }
      });
    });
  });
}

}  // namespace cg::reference
