// One source, three instruction sets. `for_isa` compiles a generic lambda for each and runs the one that fits the CPU:
//
//   for_isa([&](auto isa) CG_INLINE_LAMBDA { … tile<isa.tile_rows, 32>(…) … });
//
// Everything inside must be always-inline (CG_INLINE), or it would be compiled for the baseline. The compiler vectorises over independent outputs only and
// fuses only what is written as fma (-ffp-contract=off), so the three give the same bits; the op table runs them against each other.
#pragma once

#define CG_INLINE __attribute__((always_inline)) inline
#define CG_INLINE_LAMBDA __attribute__((always_inline))

namespace cg::reference {

enum class Isa { baseline, avx2, avx512, avx512bf16 };

/// The widest set of this CPU.
Isa best_isa();
/// The one in use: best_isa() unless the environment's CG_ISA or `use_isa` chose another. Throws cg::Error{"E_ISA"} for a CG_ISA that is unknown or not this CPU's.
Isa current_isa();
/// For tests: false, and nothing changes, where the CPU does not have it. Not while ops run.
bool use_isa(Isa);
const char* name_of(Isa);

/// Rows of a register tile of 32 outputs: 16 of 32, 16 of 16 and 32 (in part in memory) of 16 registers.
struct Baseline { static constexpr int tile_rows = 4; };
struct Avx2 { static constexpr int tile_rows = 4; };
struct Avx512 { static constexpr int tile_rows = 8; };

template <class F>
__attribute__((noinline)) void run_baseline(const F& body) { body(Baseline{}); }

#ifdef __x86_64__
template <class F>
__attribute__((noinline, target("avx2,fma"))) void run_avx2(const F& body) { body(Avx2{}); }
template <class F>
__attribute__((noinline, target("avx512f"))) void run_avx512(const F& body) { body(Avx512{}); }
#endif

template <class F>
void for_isa(const F& body) {
  switch (current_isa()) {
#ifdef __x86_64__
    case Isa::avx512bf16: case Isa::avx512: return run_avx512(body);
    case Isa::avx2: return run_avx2(body);
#endif
    default: return run_baseline(body);
  }
}

}  // namespace cg::reference
