// The sum of leaf gradients in a fixed binary tree over their indices, padded with zero leaves to a power of two: the same bits in whatever order leaves are
// listed, and on however many ranks that each own a contiguous range. At most log2(G) + 1 partial sums are alive.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/adapter.h"
#include "core/backend.h"

namespace cg {

class TreeSum {
 public:
  TreeSum(Backend& backend, int64_t size) : backend_(backend), size_(size) {}

  /// `leaf(i, into)` writes the leaf of indices[i] (ascending) into a flat span, or returns false when it is zero everywhere. Returns the sum, null when it is
  /// zero; give it back with `recycle`.
  using Leaf = std::function<bool(size_t i, Tensor into)>;
  std::unique_ptr<FlatSpan> sum(Queue&, std::span<const int64_t> indices, const Leaf&);

  std::unique_ptr<FlatSpan> take();
  void recycle(std::unique_ptr<FlatSpan> span) {
    if (span) free_.push_back(std::move(span));
  }

 private:
  // The subtree over indices [low, low + width), whose leaves are indices[first .. last).
  std::unique_ptr<FlatSpan> subtree(Queue&, std::span<const int64_t> indices, const Leaf&, int64_t low, int64_t width, size_t first, size_t last);

  Backend& backend_;
  int64_t size_;
  std::vector<std::unique_ptr<FlatSpan>> free_;
};

}  // namespace cg
