// LoRA's products: each is one of rows with a factor that lies as the kernel reads it, [depth] rows, a multiple of 16 wide.
#include <algorithm>

#include "cpu/backend.h"
#include "reference/tile.h"

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

void CpuBackend::factor_product(const View<float>& x, const View<float>& factor, bool transpose, float scale, bool accumulate, const View<float>& out) {
  multiply(threads_, {x, transpose ? transposed(factor) : widened(factor), round_up(out.n2, 16), scale, accumulate, out});
}

}  // namespace cg::cpu
