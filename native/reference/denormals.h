// Products in bf16 take and give no denormals, on every path, because VDPBF16PS does not (numerics.md).
#pragma once

#include <cstdint>

namespace cg::reference {

/// While it lives, this thread's arithmetic reads denormals as zero and writes zero for them. The sign stays.
class FlushDenormals {
 public:
  FlushDenormals() : before_(read()) { write(before_ | flush); }
  ~FlushDenormals() { write(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Register = uint32_t;
  static constexpr Register flush = 0x8040;  // MXCSR: FTZ, DAZ
  static Register read() { return __builtin_ia32_stmxcsr(); }
  static void write(Register value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register flush = 1 << 24;  // FPCR: FZ
  static Register read() {
    Register value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }
#else
  using Register = int;  // a CPU that cannot: its bf16 bits differ where denormals come up
  static constexpr Register flush = 0;
  static Register read() { return 0; }
  static void write(Register) {}
#endif
  const Register before_;
};

}  // namespace cg::reference
