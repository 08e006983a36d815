// LoRA factors in fp32: A [r, K], B [N, r]; x [R, K], y [R, N], h [R, r]. Each op is one product with a factor that lies as the kernel reads it: [depth]
// rows, a multiple of 16 wide.
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>

#include "cpu/backend.h"
#include "reference/tile.h"
#include "reference/vector_math.h"

namespace cg::cpu {

using reference::View;
using reference::round_up;

namespace {

/// out (+)= scale · (a · b)
struct LoraProduct {
  View<float> a;
  const float* b;  // [a.n2][b_row], b_row at least out.n2 rounded up to 16
  int64_t b_row;
  float scale;
  bool add;
  View<float> out;
};

}  // namespace

}  // namespace cg::cpu

#define CG_KERNELS "cpu/lora_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

namespace {

void multiply(reference::Threads& threads, const LoraProduct& t) {
  const int64_t R = t.a.n0, rows = std::clamp<int64_t>(round_up(R / (4 * threads.count()), 16), 16, 128);
  threads.run(R, rows, 2.0 * double(R * t.a.n2 * t.out.n2), [&](int64_t begin, int64_t end) { CG_FOR_ISA(lora::multiply(t, begin, end)); });
}

/// The factor's transpose as a product's b.
const float* transposed(const View<float>& factor) {
  float* to = reference::scratch(0, factor.n2 * round_up(factor.n0, 16));
  CG_FOR_ISA(lora::transpose_factor(factor, to));
  return to;
}

/// The factor as a product's b, [n0][n2 rounded up to 16]: itself where it is that wide.
const float* widened(const View<float>& factor) {
  if (factor.n2 % 16 == 0 && factor.s0 == factor.n2) return factor.data;
  float* to = reference::scratch(0, factor.n0 * round_up(factor.n2, 16));
  CG_FOR_ISA(lora::widen_factor(factor, to));
  return to;
}

}  // namespace

void CpuBackend::lora_shrink(Queue& queue, Tensor x_t, Tensor a_t, Tensor h_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), a = view<float>(a_t), h = view<float>(h_t);
    if (x.n0 == 0) return;
    CG_INVARIANT(x.n2 == a.n2 && h.n2 == a.n0 && x.n0 == h.n0);
    multiply(threads_, {x, transposed(a), round_up(a.n0, 16), 1, false, h});
  });
}

void CpuBackend::lora_expand(Queue& queue, Tensor h_t, Tensor b_t, float scale, Tensor y_t) {
  enqueue(queue, [&] {
    const auto h = view<float>(h_t), b = view<float>(b_t), y = view<float>(y_t);
    if (h.n0 == 0) return;
    CG_INVARIANT(h.n2 == b.n2 && y.n2 == b.n0 && h.n0 == y.n0);
    multiply(threads_, {h, transposed(b), round_up(b.n0, 16), scale, true, y});
  });
}

void CpuBackend::lora_expand_backward(Queue& queue, Tensor dy_t, Tensor b_t, float scale, Tensor dh_t) {
  enqueue(queue, [&] {
    const auto dy = view<float>(dy_t), b = view<float>(b_t), dh = view<float>(dh_t);
    if (dy.n0 == 0) return;
    CG_INVARIANT(dy.n2 == b.n0 && dh.n2 == b.n2 && dy.n0 == dh.n0);
    multiply(threads_, {dy, widened(b), round_up(b.n2, 16), scale, false, dh});
  });
}

void CpuBackend::lora_shrink_backward(Queue& queue, Tensor dh_t, Tensor a_t, Tensor dx_t) {
  enqueue(queue, [&] {
    const auto dh = view<float>(dh_t), a = view<float>(a_t), dx = view<float>(dx_t);
    if (dh.n0 == 0) return;
    CG_INVARIANT(dh.n2 == a.n0 && dx.n2 == a.n2 && dh.n0 == dx.n0);
    multiply(threads_, {dh, widened(a), round_up(a.n2, 16), 1, true, dx});
  });
}

}  // namespace cg::cpu
