// What core knows of memory: where it is, never what is in it.
//
// A Tensor names a strided view into a buffer that a backend owns. Core plans, slices and passes tensors on; only a backend's ops, `upload` and
// `download` touch the bytes. Rank is at most 4; strides count elements; the innermost stride is 1 unless an op says that it takes others.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cg {

enum class DType : uint8_t { f32, bf16, f16, i32, i64, u64 };

constexpr int64_t size_of(DType type) {
  switch (type) {
    case DType::bf16: case DType::f16: return 2;
    case DType::f32: case DType::i32: return 4;
    case DType::i64: case DType::u64: return 8;
  }
  return 0;
}

/// Of a dense tensor.
inline int64_t elements(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

/// A block of a backend's memory. 0 is "no buffer".
using BufferId = uint32_t;

struct Tensor {
  BufferId buffer = 0;
  int64_t offset = 0;  // bytes from the buffer's start; a multiple of the element size
  int rank = 0;
  std::array<int64_t, 4> shape{};
  std::array<int64_t, 4> strides{};  // elements
  DType dtype = DType::f32;

  int64_t size() const { return elements(std::span(shape).first(static_cast<size_t>(rank))); }
  int64_t bytes() const { return size() * size_of(dtype); }
  explicit operator bool() const { return buffer != 0; }

  /// Rows [begin, end) of the first dimension.
  Tensor rows(int64_t begin, int64_t end) const {
    Tensor t = *this;
    t.offset += begin * strides[0] * size_of(dtype);
    t.shape[0] = end - begin;
    return t;
  }
  /// [rows, n] seen as [rows, n / inner, inner]. Needs a rank of 2.
  Tensor split(int64_t inner) const {
    Tensor t = *this;
    t.rank = 3;
    t.shape = {shape[0], shape[1] / inner, inner, 1};
    t.strides = {strides[0], inner, 1, 1};
    return t;
  }
};

/// A frozen matrix or vector that a backend holds in whatever layout suits it. 0 is "none" (a missing bias or norm).
struct Weight {
  uint32_t id = 0;
  explicit operator bool() const { return id != 0; }
};

}  // namespace cg
