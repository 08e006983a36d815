// The one multiplication kernel: c[r][j] (+)= Σ_k a[r][k] · b[k][j], k ascending, multiply then add.
//
// Each c[r][j] is one chain, whatever the number of rows, the tile's size or the split of k (a call with Chain::go_on continues what c holds). The compiler
// keeps the tile in registers and vectorises over j.
#pragma once

#include <cstdint>

#include "reference/isa.h"

namespace cg::reference {

/// Hides a stride's value: where the compiler knows it, it interchanges the loops over k and rows and works in memory, at a quarter of the speed.
CG_INLINE int64_t unknown(int64_t stride) {
  __asm__("" : "+r"(stride));
  return stride;
}

/// Whether a product's chains start from +0 or continue those that c holds.
enum class Chain { begin, go_on };

/// c [R][L] with row stride c_row; a by (row, k) with strides a_row, a_step; b [depth][L] with row stride b_step.
template <Chain start, int R, int L>
CG_INLINE void tile(const float* __restrict a, int64_t a_row, int64_t a_step, const float* __restrict b, int64_t b_step, int64_t depth, float* __restrict c,
                    int64_t c_row) {
  a_row = unknown(a_row);
  a_step = unknown(a_step);
  float acc[R][L];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < L; ++j) acc[r][j] = start == Chain::begin ? 0 : c[r * c_row + j];
  for (int64_t k = 0; k < depth; ++k) {
    const float* bk = b + k * b_step;
    for (int r = 0; r < R; ++r) {
      const float x = a[r * a_row + k * a_step];
      if constexpr (L == 16) {
#pragma GCC unroll 1  // unrolled into scalars before it is vectorised, otherwise
        for (int j = 0; j < L; ++j) acc[r][j] += x * bk[j];
      } else {
        for (int j = 0; j < L; ++j) acc[r][j] += x * bk[j];
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < L; ++j) c[r * c_row + j] = acc[r][j];
}

/// The same for any number of rows.
template <Chain start, int L, class I>
CG_INLINE void tiles(I, int64_t rows, const float* a, int64_t a_row, int64_t a_step, const float* b, int64_t b_step, int64_t depth, float* c, int64_t c_row) {
  constexpr int R = I::tile_rows;
  int64_t r = 0;
  for (; r + R <= rows; r += R) tile<start, R, L>(a + r * a_row, a_row, a_step, b, b_step, depth, c + r * c_row, c_row);
  if constexpr (R > 4)
    if (r + 4 <= rows) { tile<start, 4, L>(a + r * a_row, a_row, a_step, b, b_step, depth, c + r * c_row, c_row); r += 4; }
  if (r + 2 <= rows) { tile<start, 2, L>(a + r * a_row, a_row, a_step, b, b_step, depth, c + r * c_row, c_row); r += 2; }
  if (r < rows) tile<start, 1, L>(a + r * a_row, a_row, a_step, b, b_step, depth, c + r * c_row, c_row);
}

/// The same for `columns` outputs, a multiple of 16.
template <Chain start, class I>
CG_INLINE void tiles_wide(I isa, int64_t rows, int64_t columns, const float* a, int64_t a_row, int64_t a_step, const float* b, int64_t b_step, int64_t depth,
                          float* c, int64_t c_row) {
  int64_t j = 0;
  for (; j + 32 <= columns; j += 32) tiles<start, 32>(isa, rows, a, a_row, a_step, b + j, b_step, depth, c + j, c_row);
  if (j < columns) tiles<start, 16>(isa, rows, a, a_row, a_step, b + j, b_step, depth, c + j, c_row);
}

constexpr int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace cg::reference
