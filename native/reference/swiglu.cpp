// SwiGLU (Shazeer 2020, equation 6): y = gate · σ(gate) · up with σ(g) = 1 / (1 + e^−g), element by element. All tensors [R, I].
#include "reference/reference_backend.h"
#include "reference/vector_math.h"

namespace cg::reference {

void ReferenceBackend::swiglu(Queue& queue, Tensor gate_t, Tensor up_t, Tensor y_t) {
  enqueue(queue, [&] {
    const auto gate = view<float>(gate_t), up = view<float>(up_t), y = view<float>(y_t);
    CG_INVARIANT(gate.n0 == up.n0 && gate.n2 == up.n2 && gate.n0 == y.n0 && gate.n2 == y.n2);
    threads_.run(gate.n0, 16, 30.0 * double(gate.n0 * gate.n2), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t i = begin; i < end; ++i) {
          const float *g = gate.row(i), *u = up.row(i);
          float* yr = y.row(i);
          for (int64_t j = 0; j < gate.n2; ++j) yr[j] = g[j] / (1 + exp_f(-g[j])) * u[j];
        }
      });
    });
  });
}

// dup = dy · gate · σ      dgate = dy · up · σ · (1 + gate · (1 − σ)).  dgate may be gate, dup may be up.
void ReferenceBackend::swiglu_backward(Queue& queue, Tensor dy_t, Tensor gate_t, Tensor up_t, Tensor dgate_t, Tensor dup_t) {
  enqueue(queue, [&] {
    const auto dy = view<float>(dy_t), gate = view<float>(gate_t), up = view<float>(up_t), dgate = view<float>(dgate_t), dup = view<float>(dup_t);
    CG_INVARIANT(gate.n0 == up.n0 && gate.n2 == up.n2 && gate.n0 == dy.n0 && gate.n2 == dy.n2);
    CG_INVARIANT(gate.n0 == dgate.n0 && gate.n2 == dgate.n2 && gate.n0 == dup.n0 && gate.n2 == dup.n2);
    threads_.run(gate.n0, 16, 40.0 * double(gate.n0 * gate.n2), [&](int64_t begin, int64_t end) {
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t i = begin; i < end; ++i) {
          const float *d = dy.row(i), *g = gate.row(i), *u = up.row(i);
          float *dg = dgate.row(i), *du = dup.row(i);
          for (int64_t j = 0; j < gate.n2; ++j) {
            const float s = 1 / (1 + exp_f(-g[j])), dj = d[j], gj = g[j], uj = u[j];
            du[j] = dj * (gj * s);
            dg[j] = dj * uj * (s * (1 + gj * (1 - s)));
          }
        }
      });
    });
  });
}

}  // namespace cg::reference
