// Memory of the reference backend: arenas, transfers, fill, strided copy, frozen weights.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/dtype.h"
#include "reference/reference_backend.h"
#include "reference/tile.h"

namespace cg::reference {

namespace {

/// Calls body(offset of from, offset of to) in elements for every run of the last dimension.
template <class Body>
void for_each_run(const Tensor& from, const Tensor& to, const Body& body) {
  std::array<int64_t, 4> shape{1, 1, 1, 1}, a{}, b{};
  for (int i = 0; i < from.rank; ++i) {
    shape[4 - from.rank + i] = from.shape[i];
    a[4 - from.rank + i] = from.strides[i];
    b[4 - from.rank + i] = to.strides[i];
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j)
      for (int64_t k = 0; k < shape[2]; ++k) body(i * a[0] + j * a[1] + k * a[2], i * b[0] + j * b[1] + k * b[2]);
}

bool contiguous(const Tensor& t) {
  int64_t dense = 1;
  for (int i = t.rank - 1; i >= 0; dense *= t.shape[i--])
    if (t.shape[i] != 1 && t.strides[i] != dense) return false;
  return true;
}

template <class T>
void fill_run(std::byte* at, int64_t n, float value) {
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(at)[i] = T(value);
}

std::unique_ptr<float[], void (*)(void*)> floats_of(int64_t n) {
  auto* data = static_cast<float*>(std::aligned_alloc(64, size_t(round_up(n * 4 + 1, 64))));
  if (data == nullptr) throw std::bad_alloc();
  return {data, std::free};
}

void tell(ReferenceQueue& queue) {
  if (queue.error) std::rethrow_exception(std::exchange(queue.error, nullptr));
}

}  // namespace

Memory heap_memory() {
  return {[](int64_t bytes) { return std::aligned_alloc(64, size_t(bytes)); }, [](void* data, int64_t) { std::free(data); }};
}

ReferenceBackend::ReferenceBackend(int threads, DType precision, Memory memory) : threads_(threads), precision_(precision), memory_(std::move(memory)) {
  CG_INVARIANT(precision == DType::f32 || precision == DType::bf16);
  current_isa();  // a CG_ISA that this CPU does not have is told now
}

ReferenceBackend::~ReferenceBackend() {
  for (auto& block : blocks_)
    if (block.data) memory_.release(block.data, block.bytes);
}

std::string ReferenceBackend::description() const {
  return std::string("CPU, reference backend, ") + name_of(current_isa()) + ", " + std::to_string(threads_.count()) +
         (threads_.count() == 1 ? " thread" : " threads");
}

BufferId ReferenceBackend::arena(int64_t bytes) {
  CG_INVARIANT(bytes >= 0);
  const int64_t size = round_up(bytes > 0 ? bytes : 1, 64);
  auto* data = static_cast<std::byte*>(memory_.allocate(size));
  if (data == nullptr) throw Error("E_MEMORY", "no memory for a block of " + std::to_string(size >> 20) + " MiB; use fewer rows per pass or a smaller batch");
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i].data == nullptr) {
      blocks_[i] = {data, size};
      return BufferId(i + 1);
    }
  blocks_.push_back({data, size});
  return BufferId(blocks_.size());
}

void ReferenceBackend::release(BufferId id) {
  const std::lock_guard lock(mutex_);
  CG_INVARIANT(id >= 1 && id <= blocks_.size() && blocks_[id - 1].data != nullptr);
  memory_.release(blocks_[id - 1].data, blocks_[id - 1].bytes);
  blocks_[id - 1] = {};
}

std::byte* ReferenceBackend::bytes_of(const Tensor& t) const {
  if (t.size() == 0) return nullptr;
  int64_t last = 0;
  for (int i = 0; i < t.rank; ++i) {
    CG_INVARIANT(t.shape[i] > 0 && t.strides[i] >= 0);
    last += (t.shape[i] - 1) * t.strides[i];
  }
  CG_INVARIANT(t.shape[t.rank - 1] == 1 || t.strides[t.rank - 1] == 1);
  CG_INVARIANT(t.offset % size_of(t.dtype) == 0);
  const std::lock_guard lock(mutex_);
  CG_INVARIANT(t.buffer >= 1 && t.buffer <= blocks_.size() && blocks_[t.buffer - 1].data != nullptr);
  CG_INVARIANT(t.offset >= 0 && t.offset + (last + 1) * size_of(t.dtype) <= blocks_[t.buffer - 1].bytes);
  return blocks_[t.buffer - 1].data + t.offset;
}

const Packed& ReferenceBackend::packed(Weight w) const {
  const std::lock_guard lock(mutex_);
  CG_INVARIANT(w.id >= 1 && w.id <= weights_.size() && weights_[w.id - 1] != nullptr);
  return *weights_[w.id - 1];
}

void ReferenceBackend::upload(Queue& queue, const void* host, Tensor to) {
  enqueue(queue, [&] {
    CG_INVARIANT(contiguous(to));
    if (to.size() > 0) std::memcpy(bytes_of(to), host, size_t(to.bytes()));
  });
}

void ReferenceBackend::download(Queue& queue, Tensor from, void* host) {
  tell(static_cast<ReferenceQueue&>(queue));
  CG_INVARIANT(contiguous(from));
  if (from.size() > 0) std::memcpy(host, bytes_of(from), size_t(from.bytes()));
}

void ReferenceBackend::wait(Queue& queue) { tell(static_cast<ReferenceQueue&>(queue)); }

void ReferenceBackend::fill(Queue& queue, Tensor t, float value) {
  enqueue(queue, [&] {
    CG_INVARIANT(t.rank >= 1);
    if (t.size() == 0) return;
    std::byte* data = bytes_of(t);
    for_each_run(t, t, [&](int64_t at, int64_t) {
      std::byte* run = data + at * size_of(t.dtype);
      const int64_t n = t.shape[t.rank - 1];
      switch (t.dtype) {
        case DType::f32: return fill_run<float>(run, n, value);
        case DType::i32: return fill_run<int32_t>(run, n, value);
        case DType::i64: return fill_run<int64_t>(run, n, value);
        case DType::u64: return fill_run<uint64_t>(run, n, value);
        default: CG_INVARIANT(t.dtype != DType::bf16 && t.dtype != DType::f16);
      }
    });
  });
}

void ReferenceBackend::copy(Queue& queue, Tensor from, Tensor to) {
  enqueue(queue, [&] {
    CG_INVARIANT(from.rank == to.rank && from.rank >= 1 && from.dtype == to.dtype);
    for (int i = 0; i < from.rank; ++i) CG_INVARIANT(from.shape[i] == to.shape[i]);
    if (from.size() == 0) return;
    const std::byte* source = bytes_of(from);
    std::byte* target = bytes_of(to);
    const int64_t element = size_of(from.dtype), run = from.shape[from.rank - 1] * element;
    for_each_run(from, to, [&](int64_t a, int64_t b) { std::memmove(target + b * element, source + a * element, size_t(run)); });
  });
}

std::unique_ptr<Packed> ReferenceBackend::kept(const std::string& name, const void* host, DType dtype, std::span<const int64_t> shape) {
  const bool floats = dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
  if (!floats || shape.empty() || shape.size() > 2) throw Error("E_SHAPE", name + ": a weight must be a vector or a matrix of f32, bf16 or f16");
  try {
    if (shape.size() == 2) return pack(host, dtype, shape[0], shape[1]);
    auto weight = std::make_unique<Packed>();
    weight->n = shape[0];
    weight->data = floats_of(shape[0]);
    widen(host, dtype, shape[0], weight->data.get());
    return weight;
  } catch (const std::bad_alloc&) {
    throw Error("E_MEMORY", "no memory for the weight " + name);
  }
}

Weight ReferenceBackend::load_weight(const std::string& name, const void* host, DType dtype, std::span<const int64_t> shape) {
  auto weight = kept(name, host, dtype, shape);
  const std::lock_guard lock(mutex_);
  weights_.push_back(std::move(weight));
  return {uint32_t(weights_.size())};
}

std::unique_ptr<Packed> ReferenceBackend::pack(const void* host, DType dtype, int64_t n, int64_t k) {
  auto weight = std::make_unique<Packed>();
  weight->n = n;
  weight->k = k;
  weight->pairs = precision_ == DType::bf16;
  const int64_t depth = weight->depth();
  weight->data = floats_of(weight->panels() * 32 * depth);
  float* data = weight->data.get();
  std::fill(data, data + weight->panels() * 32 * depth, 0.0f);
  std::vector<float> row(static_cast<size_t>(k));
  for (int64_t j = 0; j < n; ++j) {
    widen(static_cast<const std::byte*>(host) + j * k * size_of(dtype), dtype, k, row.data());
    float* column = data + j / 32 * depth * 32 + j % 32;
    for (int64_t i = 0; i < k; ++i)
      if (weight->pairs) column[(i ^ 1) * 32] = widen_bf16(round_to_bf16(row[size_t(i)]));
      else column[i * 32] = row[size_t(i)];
  }
  return weight;
}

void Packed::read(int64_t row, float* to) const {
  const float* column = panel(row / 32) + row % 32;
  for (int64_t i = 0; i < k; ++i) to[i] = column[(pairs ? i ^ 1 : i) * 32];
}

int64_t ReferenceBackend::weight_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& weight : weights_)
    if (weight) sum += weight->bytes();
  return sum;
}

void ReferenceBackend::release(Weight w) {
  const std::lock_guard lock(mutex_);
  CG_INVARIANT(w.id >= 1 && w.id <= weights_.size() && weights_[w.id - 1] != nullptr);
  weights_[w.id - 1] = nullptr;
}

void ReferenceBackend::set_weight(Queue& queue, Weight w, Tensor values_t, DType dtype) {
  enqueue(queue, [&] {
    const Packed& old = packed(w);
    const std::vector<int64_t> shape = old.k > 0 ? std::vector{old.n, old.k} : std::vector{old.n};
    CG_INVARIANT(contiguous(values_t) && values_t.dtype == DType::f32 && values_t.size() == old.n * std::max<int64_t>(old.k, 1));
    const auto* values = reinterpret_cast<const float*>(bytes_of(values_t));
    std::vector<uint16_t> rounded;
    if (dtype != DType::f32) {
      CG_INVARIANT(dtype == DType::bf16 || dtype == DType::f16);
      rounded.resize(size_t(values_t.size()));
      for (size_t i = 0; i < rounded.size(); ++i) rounded[i] = round_to_half(values[i], dtype);
    }
    auto fresh = kept("a parameter", rounded.empty() ? static_cast<const void*>(values) : rounded.data(), dtype, shape);
    const std::lock_guard lock(mutex_);
    weights_[w.id - 1] = std::move(fresh);
  });
}

void widen(const void* host, DType dtype, int64_t n, float* to) {
  const auto* half = static_cast<const uint16_t*>(host);
  if (dtype == DType::bf16)
    for (int64_t i = 0; i < n; ++i) to[i] = widen_bf16(half[i]);
  else if (dtype == DType::f16)
    for (int64_t i = 0; i < n; ++i) to[i] = widen_f16(half[i]);
  else if (n > 0)
    std::memcpy(to, host, size_t(n) * 4);
}

void check_index(const View<int32_t>& list, int64_t end, const char* what) {
  uint32_t largest = 0;  // negative ones count as large
  for (int64_t i = 0; i < list.n0; ++i) largest = std::max(largest, uint32_t(list.data[i]));
  if (list.n0 == 0 || int64_t(largest) < end) return;
  for (int64_t i = 0; i < list.n0; ++i)
    if (list.data[i] < 0 || list.data[i] >= end)
      throw Error("E_INDEX",
                  std::string(what) + " " + std::to_string(list.data[i]) + " (entry " + std::to_string(i) + ") is outside [0, " + std::to_string(end) + ")");
}

}  // namespace cg::reference

namespace cg {
std::unique_ptr<Backend> make_reference_backend(int threads, DType precision) {
  return std::make_unique<reference::ReferenceBackend>(threads, precision, reference::heap_memory());
}
}  // namespace cg
