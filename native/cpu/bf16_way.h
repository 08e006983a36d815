// Which kernel multiplies in bf16: a choice of speed alone.
#pragma once

#include "cpu/gemm.h"

namespace cg::cpu {

/// For a product of so many rows, in the instruction set in use. VDPBF16PS is taken where the CPU has it, a probe finds that it rounds as the contract says,
/// and it is the faster one here: some CPUs issue it at a quarter of the rate of a fused multiply-add, some at the full rate.
Way bf16_way(int64_t rows);

}  // namespace cg::cpu
