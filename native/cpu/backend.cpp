#include "cpu/backend.h"

namespace cg::cpu {

CpuBackend::CpuBackend(int threads, DType precision) : ReferenceBackend(threads, precision, reference::heap_memory()) {}

std::string CpuBackend::description() const {
  return std::string("CPU, ") + reference::name_of(reference::current_isa()) + ", " + std::to_string(threads_.count()) +
         (threads_.count() == 1 ? " thread" : " threads");
}

}  // namespace cg::cpu

namespace cg {
std::unique_ptr<Backend> make_cpu_backend(int threads, DType precision) { return std::make_unique<cpu::CpuBackend>(threads, precision); }
}  // namespace cg
