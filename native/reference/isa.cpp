#include "reference/isa.h"

namespace cg::reference {

namespace {
Isa chosen = best_isa();
}

Isa best_isa() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa current_isa() { return chosen; }

bool use_isa(Isa isa) {
  if (isa > best_isa()) return false;
  chosen = isa;
  return true;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512: return "avx512f";
    case Isa::avx2: return "avx2";
    case Isa::baseline: break;
  }
  return "baseline";
}

}  // namespace cg::reference
