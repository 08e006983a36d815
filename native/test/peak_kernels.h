// What the CPU can do at most, for one instruction set (cpu/for_each_isa.h): chains of multiply-adds in registers, enough of them to hide their latency.
namespace cg::cpu::CG_ISA::peak {

#if CG_ISA_LEVEL >= 2
#define CG_IN_REGISTER(x) __asm__ volatile("" : "+v"((x).v))
constexpr int chains = 16;
#elif CG_ISA_LEVEL == 1
#define CG_IN_REGISTER(x) __asm__ volatile("" : "+x"((x).v[0]), "+x"((x).v[1]))
constexpr int chains = 6;
#else
#define CG_IN_REGISTER(x) __asm__ volatile("" : : "r"(&(x)) : "memory")
constexpr int chains = 1;
#endif

/// `steps` fused multiply-adds in each of `chains` vectors.
inline void fp32(int64_t steps, double& flops) {
  Vec acc[chains], a = broadcast(0.5f), b = broadcast(0.25f);
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) acc[i] = zero();
  for (int64_t n = 0; n < steps; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) {
      acc[i] = fma(acc[i], a, b);
      CG_IN_REGISTER(acc[i]);
    }
  }
  flops = double(steps) * chains * 32;
}

/// The same with VDPBF16PS; 0 where there is none.
inline void dot([[maybe_unused]] int64_t steps, double& flops) {
#if CG_ISA_LEVEL >= 3
  Vec acc[chains];
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f003f00), b = (__m512bh)_mm512_set1_epi32(0x3e803e80);
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) acc[i] = zero();
  for (int64_t n = 0; n < steps; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) {
      acc[i].v = _mm512_dpbf16_ps(acc[i].v, a, b);
      CG_IN_REGISTER(acc[i]);
    }
  }
  flops = double(steps) * chains * 64;
#else
  flops = 0;
#endif
}

#undef CG_IN_REGISTER

}  // namespace cg::cpu::CG_ISA::peak
