// A backend with one queue, and arrays that go to it and come back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"

namespace cg::test {

class Device {
 public:
  explicit Device(Backend& backend) : backend(backend), queue_(backend.queue()) {}
  ~Device() {
    try {
      backend.wait(*queue_);
    } catch (...) {  // the test has had its chance to see it
    }
    for (const BufferId id : buffers_) backend.release(id);
    for (const Weight w : weights_) backend.release(w);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Queue& queue() { return *queue_; }

  /// A dense tensor in a buffer of its own, with NaN (integers: out of every range) around it and in it.
  Tensor make(std::vector<int64_t> shape, DType dtype = DType::f32);
  template <class T>
  Tensor put(const std::vector<T>& values, std::vector<int64_t> shape = {});
  template <class T>
  std::vector<T> get(Tensor from) {
    std::vector<T> values(size_t(from.size()));
    backend.download(*queue_, from, values.data());
    return values;
  }
  /// [N, K], or a vector without `k`.
  Weight weight(const std::vector<float>& values, int64_t n, int64_t k = 0);
  Tensor workspace(Op op, int64_t m, int64_t n, int64_t k) { return make({(backend.workspace(op, m, n, k) + 3) / 4}); }

  Backend& backend;

 private:
  std::unique_ptr<Queue> queue_;
  std::vector<BufferId> buffers_;
  std::vector<Weight> weights_;
};

template <class T> constexpr DType dtype_for();
template <> constexpr DType dtype_for<float>() { return DType::f32; }
template <> constexpr DType dtype_for<int32_t>() { return DType::i32; }
template <> constexpr DType dtype_for<uint64_t>() { return DType::u64; }

template <class T>
Tensor Device::put(const std::vector<T>& values, std::vector<int64_t> shape) {
  if (shape.empty()) shape = {int64_t(values.size())};
  const Tensor t = make(std::move(shape), dtype_for<T>());
  backend.upload(*queue_, values.data(), t);
  return t;
}

/// n floats in [−1, 1), the same for a seed everywhere.
std::vector<float> random(int64_t n, uint64_t seed);

/// The backend under test by --backend, one thread.
Backend& primary(DType precision = DType::f32);
void choose_primary(const std::string& name);

/// What `op` gives on the primary backend, after checking that every backend of its log-prob kind gives the same bits: reference with 1, 2 and 3 threads, cpu
/// with 1 and 3, both in every instruction set of this CPU, and reference-remote.
class Point;
std::vector<float> everywhere(Point& p, const std::function<std::vector<float>(Device&)>& op, DType precision = DType::f32);

/// The precisions of frozen products, for tests of ops that have one.
inline constexpr DType precisions[] = {DType::f32, DType::bf16};
inline const char* name_of(DType precision) { return precision == DType::bf16 ? " bf16" : ""; }
/// As a frozen product takes them.
std::vector<float> as(DType precision, std::vector<float> values);

}  // namespace cg::test
