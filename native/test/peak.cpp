#include "test/peak.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "reference/isa.h"

#define CG_KERNELS "test/peak_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::test {

double fp32_steps(int64_t steps) {
  double flops = 0;
  CG_FOR_ISA(peak::fp32(steps, flops));
  return flops;
}

double dot_steps(int64_t steps) {
  double flops = 0;
  CG_FOR_ISA(peak::dot(steps, flops));
  return flops;
}

}  // namespace cg::test
