// A frozen matrix as the CPU backend keeps it: panels for the forward product and, once a gradient has come through it, panels of its transpose.
#pragma once

#include <atomic>
#include <mutex>

#include "cpu/panels.h"
#include "reference/reference_backend.h"

namespace cg::cpu {

struct Matrix final : reference::Packed {
  Matrix(DType precision, int64_t n, int64_t k) : panels(precision, n, k) {
    this->n = n;
    this->k = k;
  }
  void read(int64_t row, float* to) const override { panels.read(row, to); }
  int64_t bytes() const override { return panels.bytes() + backward_bytes_; }

  /// Wᵀ, packed by the first call: sampling and scoring never need it.
  const Panels& backward(reference::Threads& threads) const {
    std::call_once(once_, [&] {
      backward_ = panels.transposed(threads);
      backward_bytes_ = backward_.bytes();
    });
    return backward_;
  }

  Panels panels;

 private:
  mutable std::once_flag once_;
  mutable Panels backward_;
  mutable std::atomic<int64_t> backward_bytes_{0};
};

}  // namespace cg::cpu
