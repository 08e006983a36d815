// The peak of one core in the instruction set in use, which the benchmark measures ops by.
#pragma once

#include <cstdint>

namespace cg::test {

/// Runs `steps` fp32 fused multiply-adds in every chain, in registers; returns the flops.
double fp32_steps(int64_t steps);
/// The same with VDPBF16PS; 0 flops without it.
double dot_steps(int64_t steps);

}  // namespace cg::test
