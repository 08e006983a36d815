#include "core/reduce.h"

#include <algorithm>

#include "core/error.h"

namespace cg {
namespace {

// Spans are released while an exception unwinds: nothing may still write to them. The exception under way is the one to report.
void finish(Backend& backend, Queue& queue) {
  try {
    backend.wait(queue);
  } catch (const Error&) {
  }
}

}  // namespace

std::unique_ptr<FlatSpan> TreeSum::take() {
  if (free_.empty()) return std::make_unique<FlatSpan>(backend_, size_);
  auto span = std::move(free_.back());
  free_.pop_back();
  return span;
}

std::unique_ptr<FlatSpan> TreeSum::sum(Queue& queue, std::span<const int64_t> indices, const Leaf& leaf) {
  if (indices.empty()) return nullptr;
  int64_t width = 1;
  while (width <= indices.back()) width *= 2;
  return subtree(queue, indices, leaf, 0, width, 0, indices.size());
}

std::unique_ptr<FlatSpan> TreeSum::subtree(Queue& queue, std::span<const int64_t> indices, const Leaf& leaf, int64_t low, int64_t width, size_t first,
                                           size_t last) {
  if (first == last) return nullptr;
  if (width == 1) {
    auto into = take();
    bool written = false;
    try {
      written = leaf(first, into->tensor());
    } catch (...) {
      finish(backend_, queue);
      throw;
    }
    if (written) return into;
    recycle(std::move(into));
    return nullptr;
  }
  const int64_t middle = low + width / 2;
  const auto split = static_cast<size_t>(
      std::lower_bound(indices.begin() + static_cast<std::ptrdiff_t>(first), indices.begin() + static_cast<std::ptrdiff_t>(last), middle) - indices.begin());
  auto left = subtree(queue, indices, leaf, low, width / 2, first, split);
  auto right = subtree(queue, indices, leaf, middle, width / 2, split, last);
  if (!left) return right;
  if (right) {
    backend_.add(queue, right->tensor(), left->tensor());
    recycle(std::move(right));
  }
  return left;
}

}  // namespace cg
