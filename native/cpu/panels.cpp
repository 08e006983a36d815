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

namespace {

/// A block of at most 48 by 48 values: from [inputs][from_width] to [outputs][to_width].
void transpose_block(const float* from, int64_t from_width, int64_t inputs, int64_t outputs, float* to, int64_t to_width) {
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k) to[n * to_width + k] = from[k * from_width + n];
}

/// The same in pairs: two lanes of neighbouring outputs become two of neighbouring inputs. Halves that pad an odd number are zero, and stay so.
void transpose_pairs(const float* from, int64_t from_width, int64_t inputs, int64_t outputs, float* to, int64_t to_width) {
  for (int64_t n = 0; n < outputs; n += 2)
    for (int64_t k = 0; k < inputs; k += 2) {
      const float* pair = from + k / 2 * from_width + n;
      const uint32_t a = std::bit_cast<uint32_t>(pair[0]), b = std::bit_cast<uint32_t>(pair[1]);
      to[n / 2 * to_width + k] = std::bit_cast<float>((a & 0xffff) | b << 16);
      to[n / 2 * to_width + k + 1] = std::bit_cast<float>(a >> 16 | (b & 0xffff0000));
    }
}

}  // namespace

Panels Panels::transposed(reference::Threads& threads) const {
  Panels t(pairs_ ? DType::bf16 : DType::f32, inputs_, outputs_);
  const int64_t per_step = pairs_ ? 2 : 1;
  threads.run(t.groups(), 1, 8.0 * double(outputs_ * inputs_), [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      const int64_t k = h * group_width, count = std::min(group_width, inputs_ - k), wide = t.width(h);
      float* to = t.lanes_.get() + k * t.steps();
      for (int64_t g = 0; g < groups(); ++g) {
        const int64_t n = g * group_width;
        (pairs_ ? transpose_pairs : transpose_block)(group(g) + k / per_step * width(g), width(g), count, std::min(group_width, outputs_ - n),
                                                     to + n / per_step * wide, wide);
      }
      for (int64_t i = 0; i < t.steps(); ++i) std::fill(to + i * wide + (count + per_step - 1) / per_step * per_step, to + (i + 1) * wide, 0.0f);
    }
  });
  return t;
}

}  // namespace cg::cpu
