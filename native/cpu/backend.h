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
};

}  // namespace cg::cpu
