// How a frozen matrix lies in memory for the product kernels: groups of 48 outputs, each [inputs][48], so that three vectors of 16 outputs are one stream.
//
// The last group is as wide as it must be: 16, 32 or 48, filled up with zeros. In bf16 two neighbouring inputs are one 32-bit word, the even one in the lower
// half ([inputs / 2][48][2]); an odd number of inputs is filled up with a zero. So a "lane" is 32 bits in either precision, and a "step" is one row of lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "core/dtype.h"
#include "core/tensor.h"
#include "reference/threads.h"

namespace cg::cpu {

class Panels {
 public:
  static constexpr int64_t group_width = 48, vector_width = 16;

  Panels() = default;
  /// Uninitialised. Throws std::bad_alloc.
  Panels(DType precision, int64_t outputs, int64_t inputs);

  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  bool pairs() const { return pairs_; }
  int64_t steps() const { return pairs_ ? (inputs_ + 1) / 2 : inputs_; }
  int64_t groups() const { return (outputs_ + group_width - 1) / group_width; }
  /// Lanes of a row of group g: what it is padded to.
  int64_t width(int64_t g) const { return std::min(group_width, (outputs_ - g * group_width + vector_width - 1) / vector_width * vector_width); }
  const float* group(int64_t g) const { return lanes_.get() + g * group_width * steps(); }
  int64_t bytes() const { return bytes_; }

  /// Fills every group; row(n, to) writes the `inputs` values of output n. Rounds to bf16 where that is the precision.
  template <class Row>
  void fill(reference::Threads& threads, const Row& row);
  /// The `inputs` values of output n.
  void read(int64_t n, float* to) const;
  /// The same values with outputs and inputs changing places.
  Panels transposed(reference::Threads&) const;

 private:
  /// from [48][inputs], absent rows zero.
  void pack_group(int64_t g, const float* from);

  int64_t outputs_ = 0, inputs_ = 0, bytes_ = 0;
  bool pairs_ = false;
  std::unique_ptr<float[], void (*)(void*)> lanes_{nullptr, std::free};
};

template <class Row>
void Panels::fill(reference::Threads& threads, const Row& row) {
  threads.run(groups(), 1, 8.0 * double(outputs_ * inputs_), [&](int64_t begin, int64_t end) {
    float* rows = reference::scratch(0, group_width * inputs_);
    for (int64_t g = begin; g < end; ++g) {
      const int64_t count = std::min(group_width, outputs_ - g * group_width);
      for (int64_t j = 0; j < count; ++j) row(g * group_width + j, rows + j * inputs_);
      std::fill(rows + count * inputs_, rows + width(g) * inputs_, 0.0f);
      pack_group(g, rows);
    }
  });
}

}  // namespace cg::cpu
