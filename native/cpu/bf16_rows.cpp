#include <bit>
#include <cstring>

#include "cpu/gemm.h"
#include "reference/isa.h"

#define CG_KERNELS "cpu/bf16_rows_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

void round_rows(Way way, const float* x, int64_t x_stride, int64_t rows, int64_t n, float* to, int64_t to_stride) {
  CG_FOR_ISA(bf16::round_rows(way, x, x_stride, rows, n, to, to_stride));
}

}  // namespace cg::cpu
