// The gradient of a LoRA factor or of any linear: which operand is read by vectors, and how the output is cut into tasks.
#include <algorithm>
#include <utility>

#include "cpu/backend.h"
#include "reference/tile.h"

namespace cg::cpu {

using reference::View;
using reference::parts;
using reference::round_up;

namespace {

/// Rows of a chain.
constexpr int64_t gradient_block = 256;

/// A task that is as tall as this copies a panel of `across` first: its tiles then read it without a stride, which costs address translations and collides in
/// caches.
constexpr int64_t tall_for_copy = 160;

/// sums [down.n2, across.n2] over rows: one value of `down` at a time, vectors of `across`, which is the wider one of left and right: each of its values is
/// read once or twice, those of the narrow one stay in the caches.
struct GradientOperands {
  View<float> down, across, out;
  float scale;
  bool transposed;  // out is [across, down]
};

/// A rectangle of the sums: values [down, down + tall) times [across, across + wide).
struct GradientTask {
  int64_t down, tall, across, wide;
};

}  // namespace

}  // namespace cg::cpu

#define CG_KERNELS "cpu/lora_gradient_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

namespace {

/// A task's sums and a block of its operands stay in the second-level cache; threads want several tasks each. Changes no result.
struct TaskSize {
  int64_t tall = 192, wide = 384;

  TaskSize(int64_t down, int64_t across, int threads) {
    if (down < tall) wide = tall * wide / down / 48 * 48;
    while (threads > 1 && count(down, across) < 4 * threads && (wide > 48 || tall > 24)) wide > 48 ? wide = round_up(wide / 2, 48) : tall /= 2;
    tall = std::min(tall, down);
    wide = std::min(wide, across);
  }
  int64_t count(int64_t down, int64_t across) const { return parts(down, tall) * parts(across, wide); }
};

}  // namespace

void CpuBackend::linear_gradient(const View<float>& left, const View<float>& right, float scale, const View<float>& out) {
  GradientOperands t{left, right, out, scale, out.n0 > out.n2};
  if (t.transposed) std::swap(t.down, t.across);
  const int64_t down = t.down.n2, across = t.across.n2;
  const TaskSize size(down, across, threads_.count());
  const int64_t in_a_row = parts(across, size.wide), blocks = parts(left.n0, gradient_block);
  int64_t subtrees = 2;
  while (int64_t{1} << (subtrees - 2) < blocks) ++subtrees;
  threads_.run(size.count(down, across), 1, 2.0 * double(left.n0 * down * across), [&](int64_t begin, int64_t end) {
    float* sums = reference::scratch(0, subtrees * size.tall * round_up(size.wide, 16));
    float* copy = reference::scratch(1, gradient_block * 48);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t d = i / in_a_row * size.tall, a = i % in_a_row * size.wide;
      CG_FOR_ISA(lora::gradient(t, {d, std::min(size.tall, down - d), a, std::min(size.wide, across - a)}, sums, copy));
    }
  });
}

}  // namespace cg::cpu
