// Device memory of one kind of batch: measured, allocated once and reused while batches fit.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/backend.h"

namespace cg {

class Arena {
 public:
  explicit Arena(Backend& backend) : backend_(backend) {}
  ~Arena() {
    if (buffer_) backend_.release(buffer_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Bytes that a layout takes; nothing is allocated or placed.
  template <class F>
  static int64_t measure(Backend& backend, F&& layout) {
    Arena arena(backend);
    arena.measuring_ = true;
    layout(arena);
    return arena.used_;
  }

  /// Runs `layout(*this)` twice: to measure what it takes, then to place it. Returns its bytes. No op that uses an earlier layout may be pending.
  template <class F>
  int64_t plan(F&& layout) {
    used_ = 0;
    measuring_ = true;
    layout(*this);
    if (used_ > capacity_) {
      if (buffer_) backend_.release(buffer_);
      buffer_ = 0;
      capacity_ = 0;
      const int64_t bytes = used_ + std::min(used_ / 4, slack);
      buffer_ = backend_.arena(bytes);
      capacity_ = bytes;
    }
    used_ = 0;
    measuring_ = false;
    layout(*this);
    return used_;
  }

  /// A contiguous tensor; its bytes are whatever was there.
  Tensor take(std::initializer_list<int64_t> shape, DType dtype = DType::f32) {
    Tensor t;
    t.buffer = measuring_ ? 0 : buffer_;
    t.offset = used_;
    t.dtype = dtype;
    t.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), t.shape.begin());
    int64_t stride = 1;
    for (int i = t.rank; i-- > 0; stride *= t.shape[i]) t.strides[i] = stride;
    used_ += (std::max<int64_t>(t.bytes(), 1) + 63) / 64 * 64;
    return t;
  }

  int64_t bytes() const { return capacity_; }

 private:
  static constexpr int64_t slack = 16 << 20;  // a batch that grows token by token must not move at every step

  Backend& backend_;
  BufferId buffer_ = 0;
  int64_t capacity_ = 0, used_ = 0;
  bool measuring_ = false;
};

/// A batch's lists, collected on the host and sent in one upload.
class ListPack {
 public:
  void clear() { bytes_.clear(); }

  /// Appends a list; the tensor is relative to the pack until `in` places it. A shape other than [n] may be given.
  template <class T>
  Tensor add(std::span<const T> list, DType dtype, std::initializer_list<int64_t> shape = {}) {
    bytes_.resize((bytes_.size() + 63) / 64 * 64);
    Tensor t;
    t.offset = static_cast<int64_t>(bytes_.size());
    t.dtype = dtype;
    t.rank = shape.size() ? static_cast<int>(shape.size()) : 1;
    if (shape.size()) std::copy(shape.begin(), shape.end(), t.shape.begin());
    else t.shape[0] = static_cast<int64_t>(list.size());
    int64_t stride = 1;
    for (int i = t.rank; i-- > 0; stride *= t.shape[i]) t.strides[i] = stride;
    bytes_.resize(bytes_.size() + list.size_bytes());
    if (!list.empty()) std::memcpy(bytes_.data() + t.offset, list.data(), list.size_bytes());
    return t;
  }
  Tensor add(const std::vector<int32_t>& list) { return add(std::span<const int32_t>(list), DType::i32); }
  Tensor add(const std::vector<float>& list) { return add(std::span<const float>(list), DType::f32); }

  /// Takes room for the whole pack.
  Tensor take(Arena& arena) const { return arena.take({static_cast<int64_t>(bytes_.size() + 3) / 4}, DType::i32); }

  void upload(Backend& backend, Queue& queue, Tensor room) {
    bytes_.resize(static_cast<size_t>(room.bytes()));
    if (room.size() > 0) backend.upload(queue, bytes_.data(), room);
  }

  /// The list's place in the uploaded pack.
  static Tensor in(Tensor room, Tensor list) {
    list.buffer = room.buffer;
    list.offset += room.offset;
    return list;
  }

 private:
  std::vector<char> bytes_;
};

}  // namespace cg
