// The reference backend: the readable twin that every other backend is compared with, bit for bit the same on any x86-64 and any number of threads.
//
// Ops run in the caller's thread (helped by the pool) before they return, which the contract allows; their errors still wait for `download` or `wait`.
// One file per family of ops; each states its arithmetic. numerics.md has the contract.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "reference/isa.h"
#include "reference/threads.h"

namespace cg::reference {

/// Where arenas live. The remote twin brings memory that is inaccessible outside its ops.
struct Memory {
  std::function<void*(int64_t bytes)> allocate;  // nullptr when there is none
  std::function<void(void*, int64_t bytes)> release;
};

/// Aligned blocks of the process's heap.
Memory heap_memory();

/// [n0, n1, n2] with a dense last dimension.
template <class T>
struct View {
  T* data = nullptr;
  int64_t n0 = 0, n1 = 1, n2 = 1, s0 = 0, s1 = 0;
  T* row(int64_t i) const { return data + i * s0; }
  T* row(int64_t i, int64_t j) const { return data + i * s0 + j * s1; }
};

/// A frozen parameter. A vector is fp32 as it is. The reference keeps a matrix [N, K] as fp32 panels of 32 rows, [N / 32][depth][32], the last one filled up
/// with zeros. For products in bf16 its values are rounded and each pair of k lies the odd one first, [k1, k0, k3, k2, …], an odd K filled up with a zero.
struct Packed {
  virtual ~Packed() = default;
  int64_t n = 0, k = 0;  // a vector has k = 0
  bool pairs = false;
  std::unique_ptr<float[], void (*)(void*)> data{nullptr, std::free};
  int64_t depth() const { return pairs ? (k + 1) / 2 * 2 : k; }
  const float* panel(int64_t p) const { return data.get() + p * depth() * 32; }
  int64_t panels() const { return (n + 31) / 32; }
  /// Row `row` of a matrix, K values.
  virtual void read(int64_t row, float* to) const;
  /// Of memory, copies in other orders included.
  virtual int64_t bytes() const { return (k > 0 ? panels() * 32 * depth() : n) * 4; }
};

struct AttentionOperands;  // attention.h
struct AttentionGradient;

struct ReferenceQueue : Queue {
  std::exception_ptr error;  // the first; later ops are skipped until it is told
};

class ReferenceBackend : public Backend {
 public:
  /// `precision` of the frozen products: f32, or bf16 (numerics.md).
  ReferenceBackend(int threads, DType precision, Memory memory);
  ~ReferenceBackend() override;

  std::string logprob_kind() const override { return precision_ == DType::bf16 ? "ref-2/bf16" : "ref-2/fp32"; }
  std::string description() const override;

  std::unique_ptr<Queue> queue() override { return std::make_unique<ReferenceQueue>(); }
  BufferId arena(int64_t bytes) override;
  void release(BufferId) override;
  void upload(Queue&, const void* host, Tensor to) override;
  void download(Queue&, Tensor from, void* host) override;
  void fill(Queue&, Tensor, float value) override;
  void copy(Queue&, Tensor from, Tensor to) override;
  void wait(Queue&) override;
  Weight load_weight(const std::string& name, const void* host, DType dtype, std::span<const int64_t> shape) override;
  void release(Weight) override;
  void set_weight(Queue&, Weight, Tensor values, DType dtype) override;
  int64_t workspace(Op, int64_t m, int64_t n, int64_t k) const override;

  /// Memory of all weights now. It grows when a backend packs a matrix a second time for its gradient.
  int64_t weight_bytes() const;

  void embed(Queue&, Weight table, Tensor ids, Tensor y) override;
  void gather_rows(Queue&, Tensor x, Tensor index, Tensor y) override;
  void scatter_rows(Queue&, Tensor x, Tensor index, Tensor y) override;
  void add(Queue&, Tensor x, Tensor y) override;
  void rms_norm(Queue&, Tensor x, Weight w, float eps, Tensor y, Tensor rstd) override;
  void rms_norm_backward(Queue&, Tensor dy, Tensor x, Weight w, Tensor rstd, Tensor dx, bool accumulate) override;
  void rope(Queue&, Tensor x, Tensor position, Tensor cos, Tensor sin, Tensor y, bool inverse) override;
  void swiglu(Queue&, Tensor gate, Tensor up, Tensor y) override;
  void swiglu_backward(Queue&, Tensor dy, Tensor gate, Tensor up, Tensor dgate, Tensor dup) override;

  void matmul(Queue&, Tensor x, Weight w, Weight bias, Tensor y, bool accumulate, Tensor workspace) override;
  void matmul_backward(Queue&, Tensor dy, Weight w, Tensor dx, bool accumulate, Tensor workspace) override;
  void lora_shrink(Queue&, Tensor x, Tensor a, Tensor h) override;
  void lora_expand(Queue&, Tensor h, Tensor b, float scale, Tensor y) override;
  void lora_expand_backward(Queue&, Tensor dy, Tensor b, float scale, Tensor dh) override;
  void lora_shrink_backward(Queue&, Tensor dh, Tensor a, Tensor dx) override;
  void lora_gradient(Queue&, Tensor left, Tensor right, float scale, Tensor out, Tensor workspace) override;

  void store_kv(Queue&, Tensor x, Tensor slot, Tensor kv) override;
  void attention(Queue&, Tensor q, Tensor k, Tensor v, const AttentionTable&, Tensor out, Tensor lse, Tensor workspace) override;
  void attention_backward(Queue&, Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, const AttentionTable&, Tensor dq, Tensor dk, Tensor dv,
                          Tensor workspace) override;

  void head_logp(Queue&, Tensor h, Weight head, int64_t real_vocab, const LossEntries&, Tensor logp, Tensor entropy, Tensor workspace) override;
  void head_backward(Queue&, Tensor h, Weight head, int64_t real_vocab, const LossEntries&, Tensor coefficient, Tensor dh, Tensor workspace) override;
  void sample(Queue&, Tensor h, Weight head, int64_t real_vocab, const SampleRows&, Tensor ids, Tensor logp, Tensor workspace) override;

  void rms_norm_weight_gradient(Queue&, Tensor dy, Tensor x, Tensor rstd, Tensor dw, Tensor workspace) override;
  void embed_gradient(Queue&, Tensor ids, Tensor dx, Tensor out) override;
  void head_weight_gradient(Queue&, Tensor h, Weight head, int64_t real_vocab, const LossEntries&, Tensor coefficient, Tensor out, Tensor workspace) override;

  void scale(Queue&, Tensor x, float factor) override;
  void sum_squares(Queue&, Tensor x, Tensor out, Tensor workspace) override;
  void adamw(Queue&, const AdamW&, Tensor p, Tensor g, Tensor m, Tensor v) override;

 protected:
  /// A matrix [n, k] for this backend's products and embed. Throws std::bad_alloc.
  virtual std::unique_ptr<Packed> pack(const void* host, DType dtype, int64_t n, int64_t k);
  /// y = x · Wᵀ for the first y.n2 outputs of w, then + bias, then, accumulating, y + that. All linears and the head come through here.
  virtual void product(const View<float>& x, const Packed& w, const float* bias, bool accumulate, const View<float>& y);
  /// dx (+)= dy · W over the first dy.n2 outputs of w.
  virtual void product_backward(const View<float>& dy, const Packed& w, bool accumulate, const View<float>& dx);
  /// out (+)= scale · (x · factorᵀ), or scale · (x · factor) when not `transpose`: LoRA's four products. At least one row.
  virtual void factor_product(const View<float>& x, const View<float>& factor, bool transpose, float scale, bool accumulate, const View<float>& out);
  /// What lora_gradient gives, for at least one row and one output.
  virtual void linear_gradient(const View<float>& left, const View<float>& right, float scale, const View<float>& out);
  virtual void attend(const AttentionOperands&);
  virtual void attend_backward(const AttentionGradient&);

  /// Runs an op's body now. What it throws is kept for `download` and `wait`; after that the queue skips its ops.
  template <class Body>
  void enqueue(Queue& queue, const Body& body) {
    auto& error = static_cast<ReferenceQueue&>(queue).error;
    if (error) return;
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
  }

  /// The tensor's bytes; aborts when it leaves its buffer, has another type than T, or an innermost stride other than 1.
  template <class T>
  View<T> view(const Tensor& tensor) const;
  std::byte* bytes_of(const Tensor& tensor) const;
  const Packed& packed(Weight) const;

  mutable Threads threads_;
  const DType precision_;

 private:
  /// Calls body(begin, end, dz [end − begin][real_vocab]) for chunks of the rows of h, at least one, ascending: d loss / d logits, which head.cpp has.
  template <class Body>
  void for_each_logit_gradient(const View<float>& h, const Packed& head, int64_t real_vocab, const LossEntries&, Tensor coefficient, Tensor workspace,
                               const Body&);
  /// A weight as this backend keeps it. Throws cg::Error{"E_SHAPE"}, {"E_MEMORY"}.
  std::unique_ptr<Packed> kept(const std::string& name, const void* host, DType dtype, std::span<const int64_t> shape);

  struct Block {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  Memory memory_;
  mutable std::mutex mutex_;  // for the two tables
  std::vector<Block> blocks_;                      // by BufferId − 1
  std::vector<std::unique_ptr<Packed>> weights_;   // by Weight::id − 1
};

template <class T> constexpr DType dtype_of();
template <> constexpr DType dtype_of<float>() { return DType::f32; }
template <> constexpr DType dtype_of<int32_t>() { return DType::i32; }
template <> constexpr DType dtype_of<int64_t>() { return DType::i64; }
template <> constexpr DType dtype_of<uint64_t>() { return DType::u64; }

template <class T>
View<T> ReferenceBackend::view(const Tensor& t) const {
  CG_INVARIANT(t.dtype == dtype_of<T>());
  CG_INVARIANT(t.rank >= 1 && t.rank <= 4);
  View<T> view{reinterpret_cast<T*>(bytes_of(t)), t.shape[0], 1, 1, t.strides[0], 1};
  if (t.rank == 2) view = {view.data, t.shape[0], 1, t.shape[1], t.strides[0], t.shape[1]};
  if (t.rank == 3) view = {view.data, t.shape[0], t.shape[1], t.shape[2], t.strides[0], t.strides[1]};
  if (t.rank == 4) {  // the last two dimensions as one
    CG_INVARIANT(t.strides[2] == t.shape[3]);
    view = {view.data, t.shape[0], t.shape[1], t.shape[2] * t.shape[3], t.strides[0], t.strides[1]};
  }
  return view;
}

/// n values of dtype f32, bf16 or f16.
void widen(const void* host, DType dtype, int64_t n, float* to);

/// Every element of `list` must be in [0, end): core promises it, a list that breaks the promise ends in an error instead of a wild read.
void check_index(const View<int32_t>& list, int64_t end, const char* what);

}  // namespace cg::reference
