// The one multiplication kernel: c[r][j] (+)= Σ_k a[r][k] · b[k][j], k ascending, each step one fused multiply-add.
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

/// The rows of a right factor b [depth][..]: one after another with a stride, or wherever a list says.
struct Dense {
  const float* data;
  int64_t stride;
  CG_INLINE const float* row(int64_t k) const { return data + k * stride; }
  CG_INLINE Dense columns_from(int64_t j) const { return {data + j, stride}; }
  CG_INLINE Dense rows_from(int64_t k) const { return {data + k * stride, stride}; }
};
struct Listed {
  const float* data;
  int64_t stride;
  const int32_t* list;
  CG_INLINE const float* row(int64_t k) const { return data + list[k] * stride; }
  CG_INLINE Listed columns_from(int64_t j) const { return {data + j, stride, list}; }
  CG_INLINE Listed rows_from(int64_t k) const { return {data, stride, list + k}; }
};

/// c [R][L] with row stride c_row; a by (row, k) with strides a_row, a_step; b [depth][L].
template <Chain start, int R, int L, class B>
CG_INLINE void tile(const float* __restrict a, int64_t a_row, int64_t a_step, B b, int64_t depth, float* __restrict c, int64_t c_row) {
  a_row = unknown(a_row);
  a_step = unknown(a_step);
  float acc[R][L];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < L; ++j) acc[r][j] = start == Chain::begin ? 0 : c[r * c_row + j];
  for (int64_t k = 0; k < depth; ++k) {
    const float* __restrict bk = b.row(k);
    for (int r = 0; r < R; ++r) {
      const float x = a[r * a_row + k * a_step];
      if constexpr (L == 16) {
#pragma GCC unroll 1  // unrolled into scalars before it is vectorised, otherwise
        for (int j = 0; j < L; ++j) acc[r][j] = __builtin_fmaf(x, bk[j], acc[r][j]);
      } else {
        for (int j = 0; j < L; ++j) acc[r][j] = __builtin_fmaf(x, bk[j], acc[r][j]);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < L; ++j) c[r * c_row + j] = acc[r][j];
}

/// The same for any number of rows.
template <Chain start, int L, class I, class B>
CG_INLINE void tiles(I, int64_t rows, const float* a, int64_t a_row, int64_t a_step, B b, int64_t depth, float* c, int64_t c_row) {
  constexpr int R = I::tile_rows;
  int64_t r = 0;
  const auto some = [&]<int N>() CG_INLINE_LAMBDA {
    tile<start, N, L>(a + r * a_row, a_row, a_step, b, depth, c + r * c_row, c_row);
    r += N;
  };
  while (r + R <= rows) some.template operator()<R>();
  if (R > 4 && r + 4 <= rows) some.template operator()<4>();
  if (r + 2 <= rows) some.template operator()<2>();
  if (r < rows) some.template operator()<1>();
}

/// The same for `columns` outputs, a multiple of 16.
template <Chain start, class I, class B>
CG_INLINE void tiles_wide(I isa, int64_t rows, int64_t columns, const float* a, int64_t a_row, int64_t a_step, B b, int64_t depth, float* c, int64_t c_row) {
  int64_t j = 0;
  for (; j + 32 <= columns; j += 32) tiles<start, 32>(isa, rows, a, a_row, a_step, b.columns_from(j), depth, c + j, c_row);
  if (j < columns) tiles<start, 16>(isa, rows, a, a_row, a_step, b.columns_from(j), depth, c + j, c_row);
}

/// Pieces of at most `most` that n things make.
constexpr int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }
constexpr int64_t round_up(int64_t n, int64_t multiple) { return parts(n, multiple) * multiple; }

}  // namespace cg::reference
