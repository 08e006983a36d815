// Frozen matrices of the CPU backend, and the products with them.  x [R, K], W [N, K], y [R, N]
//
//   forward    y  = x · Wᵀ + bias    panels over N      backward    dx = dy · W    panels over K: the same kernel with Wᵀ
#include <cstring>

#include "cpu/backend.h"
#include "cpu/gemm.h"
#include "cpu/matrix.h"

namespace cg::cpu {

std::unique_ptr<reference::Packed> CpuBackend::pack(const void* host, DType dtype, int64_t n, int64_t k) {
  auto matrix = std::make_unique<Matrix>(precision_, n, k);
  const auto* bytes = static_cast<const std::byte*>(host);
  matrix->panels.fill(threads_, [&](int64_t row, float* to) { reference::widen(bytes + row * k * size_of(dtype), dtype, k, to); });
  return matrix;
}

void CpuBackend::product(const reference::View<float>& x, const reference::Packed& w, const float* bias, bool accumulate, const reference::View<float>& y) {
  multiply(threads_, x, static_cast<const Matrix&>(w).panels, bias, accumulate, y);
}

void CpuBackend::product_backward(const reference::View<float>& dy, const reference::Packed& w, bool accumulate, const reference::View<float>& dx) {
  multiply(threads_, dy, static_cast<const Matrix&>(w).backward(threads_), nullptr, accumulate, dx);
}

}  // namespace cg::cpu
