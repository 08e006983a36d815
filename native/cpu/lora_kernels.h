// LoRA factors applied to rows, and the gradients of that (arithmetic: reference/lora.cpp, whose bits these are):
//
//   out [R, n] = scale · (a [R, depth] · b [depth, n])     or     out + scale · that     one chain over depth ascending from +0 for each output
//
// Shrinks are deep and as narrow as the rank: a register tile is up to 16 rows of one vector. Expands are wide and as deep as the rank: what they add to is
// read and written once, a tile's rows from left to right, and fetched two tiles ahead.
#include "cpu/vec_math.h"
#include "cpu/register_tile.h"
#include "cpu/lora_tiles.h"

namespace cg::cpu::CG_ISA::lora {

/// Where chains go; columns from n on go nowhere.
template <bool add_to>
struct Outputs {
  float* out;
  int64_t stride, n;
  Vec scale;

  CG_INLINE Vec begin(int64_t row, int64_t column) const {
    if (add_to) __builtin_prefetch(out + row * stride + column + 96, 1, 3);
    return zero();
  }
  template <int C>
  CG_INLINE void end(int64_t row, int64_t column, const Vec* sum) const {
    float* to = out + row * stride + column;
    if (column + 16 * C <= n) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) store(to + 16 * c, add_to ? add(load(to + 16 * c), mul(scale, sum[c])) : mul(scale, sum[c]));
      return;
    }
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      const int64_t some = n - column - 16 * c;
      store_first(to + 16 * c, add_to ? add(load_first(to + 16 * c, some), mul(scale, sum[c])) : mul(scale, sum[c]), some);
    }
  }
};

/// Rows [begin, end) of out, one tile's rows after another.
template <bool add_to>
inline void multiply_rows(const LoraProduct& t, int64_t begin, int64_t end) {
  Outputs<add_to> outputs{t.out.data, t.out.s0, t.out.n2, broadcast(t.scale)};
  const Strided a{t.a.data, t.a.s0, 1};
  // Rows that lie a multiple of 4 KB apart share one set of the first-level cache, which keeps 8 lines or 12.
  const int64_t width = round_up(t.out.n2, 16), tall = tile_height(width > 16 ? 3 : 1), high = t.a.s0 % 1024 == 0 && tall > 8 ? 8 : tall;
  for (int64_t row = begin; row < end; row += high) {
    const int64_t stop = row + high < end ? row + high : end;
    for (int64_t column = 0; column < width;) {
      const int64_t vectors = vectors_for((width - column) / 16);
#if CG_ISA_LEVEL >= 2
      if (vectors == 3) tile_rows<3, tile_height(3)>(a, t.b, t.b_row, t.a.n2, outputs, row, stop, column);
      else if (vectors == 2) tile_rows<2, tile_height(2)>(a, t.b, t.b_row, t.a.n2, outputs, row, stop, column);
      else
#endif
        tile_rows<1, tile_height(1)>(a, t.b, t.b_row, t.a.n2, outputs, row, stop, column);
      column += 16 * vectors;
    }
  }
}

inline void multiply(const LoraProduct& t, int64_t begin, int64_t end) { t.add ? multiply_rows<true>(t, begin, end) : multiply_rows<false>(t, begin, end); }

/// to [n2][n0 rounded up to 16]; columns from n0 on repeat the last one.
inline void transpose_factor(const View<float>& factor, float* to) {
  const int64_t width = round_up(factor.n0, 16);
  for (int64_t j = 0; j < factor.n0; j += 16)
    for (int64_t i = 0; i < factor.n2; i += 16) {
      const float* from[16];
      for (int64_t l = 0; l < 16; ++l) from[l] = factor.row(j + l < factor.n0 ? j + l : factor.n0 - 1) + i;
      transpose(from, factor.n2 - i < 16 ? factor.n2 - i : 16, to + i * width + j, width);
    }
}

/// to [n0][n2 rounded up to 16], columns from n2 on zero.
inline void widen_factor(const View<float>& factor, float* to) {
  const int64_t width = round_up(factor.n2, 16);
  for (int64_t i = 0; i < factor.n0; ++i, to += width)
    for (int64_t j = 0; j < width; j += 16) store(to + j, load_first(factor.row(i) + j, factor.n2 - j));
}

}  // namespace cg::cpu::CG_ISA::lora
