// Compiles CG_KERNELS once per instruction set:
//
//   #define CG_KERNELS "cpu/gemm_kernels.h"
//   #include "cpu/for_each_isa.h"
//   … CG_FOR_ISA(multiply(x, w, y)) …         calls cg::cpu::<set>::multiply, of the set in use
//
// A kernel file has no include guard and no #include but of another such file; all of it stands in `namespace cg::cpu::CG_ISA`, and it uses Vec (vec.h). Its
// functions may be templates, not lambdas: compilers do not give those the region's instruction set. What it calls from elsewhere must be always-inline
// (CG_INLINE), or it would be the baseline's. Bits do not depend on the set (numerics.md).
#include "reference/isa.h"
#include "reference/vector_math.h"

#ifdef __x86_64__
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")
#define CG_ISA avx512bf16
#define CG_ISA_LEVEL 3
#include "cpu/vec.h"
#include CG_KERNELS
#undef CG_ISA
#undef CG_ISA_LEVEL
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma")
#define CG_ISA avx512
#define CG_ISA_LEVEL 2
#include "cpu/vec.h"
#include CG_KERNELS
#undef CG_ISA
#undef CG_ISA_LEVEL
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define CG_ISA avx2
#define CG_ISA_LEVEL 1
#include "cpu/vec.h"
#include CG_KERNELS
#undef CG_ISA
#undef CG_ISA_LEVEL
#pragma GCC pop_options
#endif

#define CG_ISA scalar
#define CG_ISA_LEVEL 0
#include "cpu/vec.h"
#include CG_KERNELS
#undef CG_ISA
#undef CG_ISA_LEVEL

#undef CG_KERNELS

#ifndef CG_FOR_ISA
#ifdef __x86_64__
#define CG_FOR_ISA(call)                                                        \
  do {                                                                          \
    switch (::cg::reference::current_isa()) {                                   \
      case ::cg::reference::Isa::avx512bf16: ::cg::cpu::avx512bf16::call; break; \
      case ::cg::reference::Isa::avx512: ::cg::cpu::avx512::call; break;        \
      case ::cg::reference::Isa::avx2: ::cg::cpu::avx2::call; break;            \
      case ::cg::reference::Isa::baseline: ::cg::cpu::scalar::call; break;      \
    }                                                                           \
  } while (false)
#else
#define CG_FOR_ISA(call) ::cg::cpu::scalar::call
#endif
#endif
