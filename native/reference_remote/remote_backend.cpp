// The reference backend as a device would be: memory out of reach, ops late and on another thread, errors found only by who asks.
//
// It computes what the reference backend computes, bit for bit. What it adds is that a caller who reads a tensor, counts on an op having run, or keeps changing
// an uploaded array is caught on any machine.
#include <cstring>
#include <vector>

#include "core/backend.h"
#include "reference/reference_backend.h"
#include "reference_remote/lagging_queue.h"
#include "reference_remote/vault.h"

namespace cg::reference_remote {

class RemoteBackend final : public Backend {
 public:
  RemoteBackend(int threads, int delay_us, DType precision)
      : delay_us_(delay_us),
        inner_(threads, precision, {[this](int64_t bytes) { return vault_.allocate(bytes); }, [this](void* data, int64_t bytes) { vault_.release(data, bytes); }}) {}

  std::string logprob_kind() const override { return inner_.logprob_kind(); }
  std::string description() const override { return inner_.description() + ", as a remote device"; }

  std::unique_ptr<Queue> queue() override { return std::make_unique<LaggingQueue>(inner_.queue(), delay_us_); }
  BufferId arena(int64_t bytes) override {
    const std::lock_guard lock(one_op_);
    return inner_.arena(bytes);
  }
  void release(BufferId id) override {
    const std::lock_guard lock(one_op_);
    inner_.release(id);
  }
  Weight load_weight(const std::string& name, const void* host, DType dtype, std::span<const int64_t> shape) override {
    return inner_.load_weight(name, host, dtype, shape);
  }
  void release(Weight w) override { inner_.release(w); }
  void set_weight(Queue& queue, Weight w, Tensor values, DType dtype) override {
    push(queue, [=, this](Queue& q) { inner_.set_weight(q, w, values, dtype); });
  }
  int64_t workspace(Op op, int64_t m, int64_t n, int64_t k) const override { return inner_.workspace(op, m, n, k); }

  void upload(Queue& queue, const void* host, Tensor to) override {
    std::vector<std::byte> bytes(size_t(to.bytes()));
    if (!bytes.empty()) std::memcpy(bytes.data(), host, bytes.size());
    push(queue, [=, this, bytes = std::move(bytes)](Queue& q) { inner_.upload(q, bytes.data(), to); });
  }
  void download(Queue& queue, Tensor from, void* host) override {
    std::exception_ptr error;
    push(queue, [&](Queue& q) {
      try {
        inner_.download(q, from, host);
      } catch (...) {
        error = std::current_exception();
      }
    });
    static_cast<LaggingQueue&>(queue).drain();
    if (error) std::rethrow_exception(error);
  }
  void wait(Queue& queue) override {
    auto& lagging = static_cast<LaggingQueue&>(queue);
    lagging.drain();
    inner_.wait(lagging.inner());
  }
  void fill(Queue& queue, Tensor t, float value) override { push(queue, [=, this](Queue& q) { inner_.fill(q, t, value); }); }
  void copy(Queue& queue, Tensor from, Tensor to) override { push(queue, [=, this](Queue& q) { inner_.copy(q, from, to); }); }

  void embed(Queue& queue, Weight table, Tensor ids, Tensor y) override { push(queue, [=, this](Queue& q) { inner_.embed(q, table, ids, y); }); }
  void gather_rows(Queue& queue, Tensor x, Tensor index, Tensor y) override { push(queue, [=, this](Queue& q) { inner_.gather_rows(q, x, index, y); }); }
  void scatter_rows(Queue& queue, Tensor x, Tensor index, Tensor y) override { push(queue, [=, this](Queue& q) { inner_.scatter_rows(q, x, index, y); }); }
  void add(Queue& queue, Tensor x, Tensor y) override { push(queue, [=, this](Queue& q) { inner_.add(q, x, y); }); }
  void rms_norm(Queue& queue, Tensor x, Weight w, float eps, Tensor y, Tensor rstd) override {
    push(queue, [=, this](Queue& q) { inner_.rms_norm(q, x, w, eps, y, rstd); });
  }
  void rms_norm_backward(Queue& queue, Tensor dy, Tensor x, Weight w, Tensor rstd, Tensor dx, bool accumulate) override {
    push(queue, [=, this](Queue& q) { inner_.rms_norm_backward(q, dy, x, w, rstd, dx, accumulate); });
  }
  void rope(Queue& queue, Tensor x, Tensor position, Tensor cos, Tensor sin, Tensor y, bool inverse) override {
    push(queue, [=, this](Queue& q) { inner_.rope(q, x, position, cos, sin, y, inverse); });
  }
  void swiglu(Queue& queue, Tensor gate, Tensor up, Tensor y) override { push(queue, [=, this](Queue& q) { inner_.swiglu(q, gate, up, y); }); }
  void swiglu_backward(Queue& queue, Tensor dy, Tensor gate, Tensor up, Tensor dgate, Tensor dup) override {
    push(queue, [=, this](Queue& q) { inner_.swiglu_backward(q, dy, gate, up, dgate, dup); });
  }

  void matmul(Queue& queue, Tensor x, Weight w, Weight bias, Tensor y, bool accumulate, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.matmul(q, x, w, bias, y, accumulate, workspace); });
  }
  void matmul_backward(Queue& queue, Tensor dy, Weight w, Tensor dx, bool accumulate, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.matmul_backward(q, dy, w, dx, accumulate, workspace); });
  }
  void lora_shrink(Queue& queue, Tensor x, Tensor a, Tensor h) override { push(queue, [=, this](Queue& q) { inner_.lora_shrink(q, x, a, h); }); }
  void lora_expand(Queue& queue, Tensor h, Tensor b, float scale, Tensor y) override {
    push(queue, [=, this](Queue& q) { inner_.lora_expand(q, h, b, scale, y); });
  }
  void lora_expand_backward(Queue& queue, Tensor dy, Tensor b, float scale, Tensor dh) override {
    push(queue, [=, this](Queue& q) { inner_.lora_expand_backward(q, dy, b, scale, dh); });
  }
  void lora_shrink_backward(Queue& queue, Tensor dh, Tensor a, Tensor dx) override {
    push(queue, [=, this](Queue& q) { inner_.lora_shrink_backward(q, dh, a, dx); });
  }
  void lora_gradient(Queue& queue, Tensor left, Tensor right, float scale, Tensor out, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.lora_gradient(q, left, right, scale, out, workspace); });
  }

  void store_kv(Queue& queue, Tensor x, Tensor slot, Tensor kv) override { push(queue, [=, this](Queue& q) { inner_.store_kv(q, x, slot, kv); }); }
  void attention(Queue& queue, Tensor q, Tensor k, Tensor v, const AttentionTable& table, Tensor out, Tensor lse, Tensor workspace) override {
    push(queue, [=, this](Queue& inner) { inner_.attention(inner, q, k, v, table, out, lse, workspace); });
  }
  void attention_backward(Queue& queue, Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, const AttentionTable& table, Tensor dq, Tensor dk,
                          Tensor dv, Tensor workspace) override {
    push(queue, [=, this](Queue& inner) { inner_.attention_backward(inner, dout, q, k, v, out, lse, table, dq, dk, dv, workspace); });
  }

  void head_logp(Queue& queue, Tensor h, Weight head, int64_t real_vocab, const LossEntries& entries, Tensor logp, Tensor entropy, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.head_logp(q, h, head, real_vocab, entries, logp, entropy, workspace); });
  }
  void head_backward(Queue& queue, Tensor h, Weight head, int64_t real_vocab, const LossEntries& entries, Tensor coefficient, Tensor dh,
                     Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.head_backward(q, h, head, real_vocab, entries, coefficient, dh, workspace); });
  }
  void sample(Queue& queue, Tensor h, Weight head, int64_t real_vocab, const SampleRows& rows, Tensor ids, Tensor logp, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.sample(q, h, head, real_vocab, rows, ids, logp, workspace); });
  }

  void rms_norm_weight_gradient(Queue& queue, Tensor dy, Tensor x, Tensor rstd, Tensor dw, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.rms_norm_weight_gradient(q, dy, x, rstd, dw, workspace); });
  }
  void embed_gradient(Queue& queue, Tensor ids, Tensor dx, Tensor out) override {
    push(queue, [=, this](Queue& q) { inner_.embed_gradient(q, ids, dx, out); });
  }
  void head_weight_gradient(Queue& queue, Tensor h, Weight head, int64_t real_vocab, const LossEntries& entries, Tensor coefficient, Tensor out,
                            Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.head_weight_gradient(q, h, head, real_vocab, entries, coefficient, out, workspace); });
  }

  void scale(Queue& queue, Tensor x, float factor) override { push(queue, [=, this](Queue& q) { inner_.scale(q, x, factor); }); }
  void sum_squares(Queue& queue, Tensor x, Tensor out, Tensor workspace) override {
    push(queue, [=, this](Queue& q) { inner_.sum_squares(q, x, out, workspace); });
  }
  void adamw(Queue& queue, const AdamW& step, Tensor p, Tensor g, Tensor m, Tensor v) override {
    push(queue, [=, this](Queue& q) { inner_.adamw(q, step, p, g, m, v); });
  }

 private:
  template <class Op>
  void push(Queue& queue, Op op) {
    static_cast<LaggingQueue&>(queue).push([this, op = std::move(op)](Queue& inner) {
      const std::lock_guard lock(one_op_);
      const Opened opened(vault_);
      op(inner);
    });
  }

  const int delay_us_;
  std::mutex one_op_;  // queues take turns, and arenas come and go between ops
  Vault vault_;        // outlives inner_
  reference::ReferenceBackend inner_;
};

}  // namespace cg::reference_remote

namespace cg {
std::unique_ptr<Backend> make_reference_remote_backend(int threads, int delay_us, DType precision) {
  return std::make_unique<reference_remote::RemoteBackend>(threads, delay_us, precision);
}
}  // namespace cg
