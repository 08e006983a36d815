// Products of rows with packed weights.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "reference/denormals.h"
#include "reference/reference_backend.h"
#include "reference/tile.h"

namespace cg::reference {

/// to [n][32] = the transpose of from [rows ≤ 32][n] with row stride `stride`; missing rows are zero.
CG_INLINE void transpose_rows(const float* from, int64_t stride, int64_t rows, int64_t n, float* to) {
  if (rows < 32) std::memset(to, 0, size_t(n) * 32 * 4);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; ++j) to[j * 32 + r] = from[r * stride + j];
}

/// Σ_k x[r][k] W[n][k], k in the panels' order from 0 (x [R, depth] has the same), for all rows and outputs; finish(row, first output, count ≤ 32, sums) is
/// called once for each row of a panel.
template <class Finish>
void multiply_panels(Threads& threads, const View<float>& x, const Packed& w, const Finish& finish) {
  constexpr int64_t block = 64, panels = 4;
  const int64_t row_blocks = (x.n0 + block - 1) / block, groups = (w.panels() + panels - 1) / panels;
  threads.run(row_blocks * groups, 1, 2.0 * double(x.n0 * w.n * w.k), [&](int64_t begin, int64_t end) {
    alignas(64) float sums[block * 32];
    std::optional<FlushDenormals> flush;
    if (w.pairs) flush.emplace();
    for_isa([&](auto isa) CG_INLINE_LAMBDA {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r0 = task / groups * block, rows = std::min(block, x.n0 - r0);
        const int64_t first = task % groups * panels, last = std::min(first + panels, w.panels());
        for (int64_t p = first; p < last; ++p) {
          tiles<Chain::begin, 32>(isa, rows, x.row(r0), x.s0, 1, Dense{w.panel(p), 32}, w.depth(), sums, 32);
          const int64_t count = std::min<int64_t>(32, w.n - p * 32);
          for (int64_t r = 0; r < rows; ++r) finish(r0 + r, p * 32, count, sums + r * 32);
        }
      }
    });
  });
}

}  // namespace cg::reference
