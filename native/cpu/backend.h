// The backend people run on a CPU: the reference's bits, faster.
//
// It is the reference backend with that arithmetic replaced that takes the time: products, attention, LoRA. Checks, rows, norms, the optimiser, memory and the
// sampler's rules are the reference's own, which memory bounds already. What is replaced is compared with what it replaces, bit for bit, by the op table.
#pragma once

#include "reference/reference_backend.h"

namespace cg::cpu {

class CpuBackend final : public reference::ReferenceBackend {
 public:
  CpuBackend(int threads, DType precision);

  std::string description() const override;

 protected:
  std::unique_ptr<reference::Packed> pack(const void* host, DType dtype, int64_t n, int64_t k) override;
  void product(const reference::View<float>& x, const reference::Packed& w, const float* bias, bool accumulate, const reference::View<float>& y) override;
  void product_backward(const reference::View<float>& dy, const reference::Packed& w, bool accumulate, const reference::View<float>& dx) override;
  void factor_product(const reference::View<float>& x, const reference::View<float>& factor, bool transpose, float scale, bool accumulate,
                      const reference::View<float>& out) override;
  void linear_gradient(const reference::View<float>& left, const reference::View<float>& right, float scale, const reference::View<float>& out) override;
  void attend(const reference::AttentionOperands&) override;
  void attend_backward(const reference::AttentionGradient&) override;
};

}  // namespace cg::cpu
