#include "reference/isa.h"

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace cg::reference {

namespace {

constexpr Isa all[] = {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512bf16};

Isa from_environment() {
  const char* wanted = std::getenv("CG_ISA");
  if (wanted == nullptr || *wanted == '\0') return best_isa();
  for (const Isa isa : all) {
    if (std::string(wanted) != name_of(isa)) continue;
    if (isa <= best_isa()) return isa;
    throw Error("E_ISA", std::string("CG_ISA=") + wanted + ": this CPU has " + name_of(best_isa()) + " at most");
  }
  throw Error("E_ISA", std::string("CG_ISA=") + wanted + " is no instruction set: scalar, avx2, avx512 or avx512bf16");
}

Isa& chosen() {
  static Isa isa = from_environment();
  return isa;
}

}  // namespace

Isa best_isa() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16")) return Isa::avx512bf16;
  if (__builtin_cpu_supports("avx512f")) return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa current_isa() { return chosen(); }

bool use_isa(Isa isa) {
  if (isa > best_isa()) return false;
  chosen() = isa;
  return true;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512bf16: return "avx512bf16";
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    case Isa::baseline: break;
  }
  return "scalar";
}

}  // namespace cg::reference
