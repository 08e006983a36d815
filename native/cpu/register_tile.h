// The multiplication kernel of attention and LoRA: c[r][j] = Σ_k a[r][k] · b[k][j], k ascending, each step one fused multiply-add. Included by kernel files (no
// guard: once per instruction set), after vec.h.
//
// A tile of R rows and C vectors of 16 columns stays in registers while k runs. `Ends` says what a chain starts from and where it goes:
//
//   Vec begin(int64_t row, int64_t column)                                 sixteen chains at `column`
//   template <int C> void end(int64_t row, int64_t column, const Vec*)     C · 16 columns of one row
namespace cg::cpu::CG_ISA {

/// An operand by (row, step): a's row r at step k, or b's row k.
struct Strided {
  const float* data;
  int64_t row, step;
};

#if CG_ISA_LEVEL >= 2
constexpr int rows_for(int columns) { return columns == 4 ? 6 : columns == 3 ? 8 : 12; }  // 24 (12) of 32 registers
/// How many of the n vectors that are left go together.
CG_INLINE int64_t columns_for(int64_t n) { return n >= 7 || n == 4 ? 4 : n >= 3 ? 3 : n; }
#else
constexpr int rows_for(int) { return CG_ISA_LEVEL == 1 ? 6 : 4; }  // 12 of 16 registers
CG_INLINE int64_t columns_for(int64_t) { return 1; }
#endif

template <int R, int C, class Ends>
CG_INLINE void register_tile(const Strided& a, const float* b, int64_t b_row, int64_t depth, Ends& ends, int64_t row, int64_t column) {
  Vec sum[R][C];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[r][c] = ends.begin(row + r, column + 16 * c);
  const float* at = a.data + row * a.row;
  b += column;
#pragma GCC unroll 1
  for (int64_t k = 0; k < depth; ++k, at += a.step, b += b_row) {
    Vec y[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) y[c] = load(b + 16 * c);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec x = broadcast(at[r * a.row]);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] = fma(x, y[c], sum[r][c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) ends.template end<C>(row + r, column, sum[r]);
}

/// Rows [row, end) of C vectors.
template <int C, int R, class Ends>
CG_INLINE void tile_rows(const Strided& a, const float* b, int64_t b_row, int64_t depth, Ends& ends, int64_t row, int64_t end, int64_t column) {
  for (; row + R <= end; row += R) register_tile<R, C>(a, b, b_row, depth, ends, row, column);
  if constexpr (R > 1)
    if (row < end) tile_rows<C, R / 2>(a, b, b_row, depth, ends, row, end, column);
}

/// Rows [row, end) of `columns` vectors, the same depth for all.
template <class Ends>
CG_INLINE void tiles(const Strided& a, const float* b, int64_t b_row, int64_t depth, Ends& ends, int64_t row, int64_t end, int64_t columns) {
  for (int64_t column = 0; columns > 0;) {
    const int64_t some = columns_for(columns);
#if CG_ISA_LEVEL >= 2
    if (some == 4) tile_rows<4, rows_for(4)>(a, b, b_row, depth, ends, row, end, column);
    else if (some == 3) tile_rows<3, rows_for(3)>(a, b, b_row, depth, ends, row, end, column);
    else if (some == 2) tile_rows<2, rows_for(2)>(a, b, b_row, depth, ends, row, end, column);
    else
#endif
      tile_rows<1, rows_for(1)>(a, b, b_row, depth, ends, row, end, column);
    columns -= some;
    column += 16 * some;
  }
}

}  // namespace cg::cpu::CG_ISA
