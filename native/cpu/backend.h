// The backend people run on a CPU: the reference's bits, faster.
//
// It is the reference backend with those ops replaced that take the time: products, attention, LoRA. Rows, norms, the optimiser, memory and the sampler's rules
// are the reference's own, which memory bounds already. Every replaced op is compared with the one it replaces, bit for bit, by the op table.
#pragma once

#include "reference/reference_backend.h"

namespace cg::cpu {

class CpuBackend final : public reference::ReferenceBackend {
 public:
  CpuBackend(int threads, DType precision);

  std::string description() const override;

  void attention(Queue&, Tensor q, Tensor k, Tensor v, const AttentionTable&, Tensor out, Tensor lse, Tensor workspace) override;
  void attention_backward(Queue&, Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, const AttentionTable&, Tensor dq, Tensor dk, Tensor dv,
                          Tensor workspace) override;
  void lora_shrink(Queue&, Tensor x, Tensor a, Tensor h) override;
  void lora_expand(Queue&, Tensor h, Tensor b, float scale, Tensor y) override;
  void lora_expand_backward(Queue&, Tensor dy, Tensor b, float scale, Tensor dh) override;
  void lora_shrink_backward(Queue&, Tensor dh, Tensor a, Tensor dx) override;
  void lora_gradient(Queue&, Tensor left, Tensor right, float scale, Tensor out, Tensor workspace) override;

 protected:
  std::unique_ptr<reference::Packed> pack(const void* host, DType dtype, int64_t n, int64_t k) override;
  void product(const reference::View<float>& x, const reference::Packed& w, const float* bias, bool accumulate, const reference::View<float>& y) override;
  void product_backward(const reference::View<float>& dy, const reference::Packed& w, bool accumulate, const reference::View<float>& dx) override;
};

}  // namespace cg::cpu
