#include "cpu/panels.h"

#include <bit>
#include <new>

namespace cg::cpu {

Panels::Panels(DType precision, int64_t outputs, int64_t inputs) : outputs_(outputs), inputs_(inputs), pairs_(precision == DType::bf16) {
  const int64_t lanes = outputs > 0 ? ((groups() - 1) * group_width + width(groups() - 1)) * steps() : 0;
  bytes_ = lanes * 4;
  lanes_.reset(static_cast<float*>(std::aligned_alloc(64, size_t((bytes_ + 64) / 64 * 64))));
  if (!lanes_) throw std::bad_alloc();
}

void Panels::pack_group(int64_t g, const float* from) {
  constexpr int64_t tall = 16;  // steps of a block: a line of every row
  const int64_t wide = width(g);
  float* to = lanes_.get() + g * group_width * steps();
  for (int64_t k = 0; k < steps(); k += tall) {
    const int64_t end = std::min(k + tall, steps());
    for (int64_t j = 0; j < wide; ++j) {
      const float* row = from + j * inputs_;
      if (!pairs_)
        for (int64_t i = k; i < end; ++i) to[i * wide + j] = row[i];
      else
        for (int64_t i = k; i < end; ++i) {
          const uint32_t even = round_to_bf16(row[2 * i]), odd = 2 * i + 1 < inputs_ ? round_to_bf16(row[2 * i + 1]) : 0;
          to[i * wide + j] = std::bit_cast<float>(odd << 16 | even);
        }
    }
  }
}

void Panels::read(int64_t n, float* to) const {
  const int64_t g = n / group_width, wide = width(g);
  const float* lane = group(g) + n % group_width;
  if (!pairs_)
    for (int64_t i = 0; i < inputs_; ++i) to[i] = lane[i * wide];
  else
    for (int64_t i = 0; i < inputs_; ++i) {
      const uint32_t pair = std::bit_cast<uint32_t>(lane[i / 2 * wide]);
      to[i] = widen_bf16(uint16_t(i % 2 ? pair >> 16 : pair));
    }
}

Panels transposed(const Panels& w, reference::Threads& threads) {
  Panels t(w.pairs() ? DType::bf16 : DType::f32, w.inputs(), w.outputs());
  // Output k of the transpose is column k of w: [groups of w][steps][48] read along the groups.
  t.fill(threads, [&](int64_t k, float* to) {
    for (int64_t g = 0; g < w.groups(); ++g) {
      const int64_t wide = w.width(g), count = std::min(Panels::group_width, w.outputs() - g * Panels::group_width);
      const float* lanes = w.group(g) + (w.pairs() ? k / 2 : k) * wide;
      float* row = to + g * Panels::group_width;
      for (int64_t j = 0; j < count; ++j) row[j] = lanes[j];
      if (w.pairs())
        for (int64_t j = 0; j < count; ++j) {
          const uint32_t pair = std::bit_cast<uint32_t>(lanes[j]);
          row[j] = std::bit_cast<float>(k % 2 ? pair & 0xffff0000 : pair << 16);
        }
    }
  });
  return t;
}

}  // namespace cg::cpu
