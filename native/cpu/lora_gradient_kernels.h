// One task of the gradient of a LoRA factor, or of any linear (arithmetic: reference/lora.cpp, whose bits these are):
//
//   out [p, q] = scale · Σ_rows left[row][p] · right[row][q]     one chain per block of 256 rows, blocks joined by a binary tree
//
// Per block, sums [tall, wide] = downᵀ · across for the two operands as GradientOperands has them: panels of up to three vectors of `across`,
// tiles of up to 16 values of `down`. A block that is its pair's second adds its chains to what the first one left as they leave the registers; larger subtrees
// are joined in memory. Both operands are read with a stride that no hardware prefetcher follows, so tiles fetch the next panel and what the next block needs
// of `down`.
#include "cpu/vec_math.h"
#include "cpu/lora_tiles.h"

namespace cg::cpu::CG_ISA::lora {

/// A block of rows of one panel.
struct GradientPanel {
  const float *down, *across;  // the first row
  int64_t down_row, across_row, depth;
  int64_t last;  // columns of the last vector; 16 unless the task ends in it
  bool add_to;   // to the sums of the block before
  float* sums;
  int64_t stride;
  const float* next;   // the panel after this one: rows next_row apart, one of them fetched every `every` steps
  int64_t next_row, every;
  int64_t down_ahead;  // floats from a value of `down` to what is fetched with it
};

CG_INLINE void fetch(const float* at) { __builtin_prefetch(at, 0, 2); }

/// Values [i, i + R) of `down` and C vectors, the last one in part if `ragged`.
template <int R, int C, bool ragged>
CG_INLINE void gradient_tile(const GradientPanel& t, int64_t i) {
  Vec sum[R][C];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[r][c] = zero();
  const float *a = t.down + i, *b = t.across, *next = t.next + i / tile_height(C) * (t.depth / t.every) * t.next_row + 15;
  for (int64_t k = 0; k < t.depth; next += t.next_row) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) fetch(next + 16 * c);  // the last float of each: where lines are not those of vectors, the first one is there
    const int64_t stop = k + t.every < t.depth ? k + t.every : t.depth;
#pragma GCC unroll 1
    for (; k < stop; ++k, a += t.down_row, b += t.across_row) {
      Vec y[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) y[c] = ragged && c == C - 1 ? load_first(b + 16 * c, t.last) : load(b + 16 * c);
      fetch(a + t.down_ahead);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec x = broadcast(a[r]);
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) sum[r][c] = fma(x, y[c], sum[r][c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    float* to = t.sums + (i + r) * t.stride;
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store(to + 16 * c, t.add_to ? add(load(to + 16 * c), sum[r][c]) : sum[r][c]);
  }
}

/// Values [i, end) of `down`.
template <int R, int C, bool ragged>
CG_INLINE void gradient_tiles(const GradientPanel& t, int64_t i, int64_t end) {
  for (; i + R <= end; i += R) gradient_tile<R, C, ragged>(t, i);
  if constexpr (R > 1)
    if (i < end) gradient_tiles<R / 2, C, ragged>(t, i, end);
}

template <int C>
inline void gradient_panel(const GradientPanel& t, int64_t tall) {
  t.last < 16 ? gradient_tiles<tile_height(C), C, true>(t, 0, tall) : gradient_tiles<tile_height(C), C, false>(t, 0, tall);
}

/// sums [tall][width] of one block of rows. copy: room for [256][48].
inline void sum_block(const GradientOperands& t, const GradientTask& task, int64_t block, int64_t blocks, float* sums, int64_t width, float* copy) {
  const int64_t row = block * gradient_block;
  GradientPanel panel;
  panel.down = t.down.row(row) + task.down, panel.down_row = t.down.s0;
  panel.depth = t.down.n0 - row < gradient_block ? t.down.n0 - row : gradient_block;
  panel.add_to = block % 2 == 1;
  panel.stride = width, panel.next_row = t.across.s0;
  for (int64_t column = 0; column < width;) {
    const int64_t vectors = vectors_for((width - column) / 16), some = 16 * vectors, high = tile_height(int(vectors)), tiles = (task.tall + high - 1) / high;
    const bool ends = column + some >= width, more = block + 1 < blocks;
    const float* across = t.across.row(row) + task.across + column;
    panel.sums = sums + column;
    panel.across = across, panel.across_row = t.across.s0;
    panel.last = ends ? task.wide - (width - 16) : 16;
    panel.every = tiles < panel.depth ? tiles : panel.depth;
    panel.next = !ends ? across + some : more ? t.across.row(row + gradient_block) + task.across : across;
    panel.down_ahead = ends && more ? gradient_block * t.down.s0 : column == 0 && block == 0 && task.tall > 16 ? 16 : 0;
    if (task.tall >= tall_for_copy) {
      for (int64_t k = 0; k < panel.depth; ++k)
        for (int64_t j = 0; j < some; j += 16) store(copy + k * some + j, load_first(across + k * t.across.s0 + j, task.wide - column - j));
      panel.across = copy, panel.across_row = some, panel.last = 16;
    }
#if CG_ISA_LEVEL >= 2
    if (vectors == 3) gradient_panel<3>(panel, task.tall);
    else if (vectors == 2) gradient_panel<2>(panel, task.tall);
    else
#endif
      gradient_panel<1>(panel, task.tall);
    column += some;
  }
}

/// A subtree is added to the one before it.
CG_INLINE void join(float* subtree, int64_t area) {
  float* into = subtree - area;
  for (int64_t i = 0; i < area; i += 16) store(into + i, add(load(into + i), load(subtree + i)));
}

/// out = scale · sums, which change places where out is [across, down].
inline void write_gradient(const GradientOperands& t, const GradientTask& task, const float* sums, int64_t width) {
  const Vec scale = broadcast(t.scale);
  if (!t.transposed) {
    for (int64_t i = 0; i < task.tall; ++i)
      for (int64_t j = 0; j < task.wide; j += 16)
        store_first(t.out.row(task.down + i) + task.across + j, mul(scale, load(sums + i * width + j)), task.wide - j);
    return;
  }
  alignas(64) float turned[16][16];
  for (int64_t i = 0; i < task.tall; i += 16)
    for (int64_t j = 0; j < task.wide; j += 16) {
      const float* from[16];
      for (int64_t l = 0; l < 16; ++l) from[l] = sums + (i + l < task.tall ? i + l : i) * width + j;
      transpose(from, 16, turned[0], 16);
      for (int64_t l = 0; l < 16 && j + l < task.wide; ++l)
        store_first(t.out.row(task.across + j + l) + task.down + i, mul(scale, load(turned[l])), task.tall - i);
    }
}

/// sums: room for a subtree [tall][wide rounded up to 16] of each size, the largest first; copy as above.
inline void gradient(const GradientOperands& t, const GradientTask& task, float* sums, float* copy) {
  const int64_t width = round_up(task.wide, 16), area = task.tall * width, blocks = (t.down.n0 + gradient_block - 1) / gradient_block;
  int64_t top = 0;  // subtrees finished
  for (int64_t block = 0; block < blocks; ++block) {
    if (block % 2 == 0) ++top;
    sum_block(t, task, block, blocks, sums + (top - 1) * area, width, copy);
    if (block % 2 == 1)
      for (int64_t merged = (block + 1) / 2; merged % 2 == 0; merged /= 2) join(sums + --top * area, area);
  }
  while (top > 1) join(sums + --top * area, area);
  write_gradient(t, task, sums, width);
}

}  // namespace cg::cpu::CG_ISA::lora
