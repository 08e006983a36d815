// One piece of a product, for one instruction set (for_each_isa.h): blocks of w pass through the register tiles of gemm_tile.h, strip of rows by strip.
//
// Many rows in bf16 go through Fp32's tiles where VDPBF16PS is slow: a block of w is widened to fp32 first, each pair the odd one first, which makes Split's
// chain of Fp32's steps.
#include "cpu/gemm_tile.h"

namespace cg::cpu::CG_ISA::gemm {

/// to [2 · steps][width]: each pair of lanes as fp32, the odd one first.
CG_INLINE void widen_block(const float* lanes, int64_t steps, int64_t width, float* to) {
  for (int64_t i = 0; i < steps; ++i, lanes += width, to += 2 * width)
    for (int64_t j = 0; j < width; j += 16) {
      const Vec pair = load(lanes + j);
      store(to + j, odd_of(pair));
      store(to + width + j, even_of(pair));
    }
}

/// A row of lanes without its odd halves.
CG_INLINE void drop_odd(const float* lanes, int64_t width, float* to) {
  for (int64_t j = 0; j < width; ++j) to[j] = std::bit_cast<float>(std::bit_cast<uint32_t>(lanes[j]) & 0xffff);
}

/// n things in `count` parts, as even as can be: no last part of one.
struct Parts {
  int64_t n, count;
  CG_INLINE Parts(int64_t n, int64_t most) : n(n), count(std::max<int64_t>(1, (n + most - 1) / most)) {}
  CG_INLINE int64_t begin(int64_t i) const { return n * i / count; }
};

/// The last group's outputs from its padded sums.
CG_INLINE void finish_ragged(const Product& job, int64_t rows, int64_t column, const float* sums) {
  for (int64_t r = 0; r < rows; ++r, sums += Panels::group_width)
    for (int64_t j = column; j < job.outputs; ++j) {
      const float value = job.bias ? sums[j - column] + job.bias[j] : sums[j - column];
      float& to = job.y[r * job.y_stride + j];
      to = job.accumulate ? to + value : value;
    }
}

/// Steps [k, k + depth) of group g for all rows of a piece.
struct Block {
  int64_t g, k, depth;
  bool first, last;
  bool even_only;    // the last pair's odd half is beyond the inputs
  const char* next;  // the weights that come after these
};

/// Chains go to y when they end here and the group is not ragged, else to `partial` [rows][48], where they came from unless they begin here.
template <class Step, bool widen>
void multiply_block(const Product& job, int64_t rows, const Block& block, float* partial, float* widened) {
  constexpr int64_t whole = Panels::group_width, floats = widen ? 2 : Step::floats;  // of x for a row of lanes
  const int64_t width = job.w->width(block.g), column = block.g * whole, columns = std::min(whole, job.outputs - column), vectors = (columns + 15) / 16;
  const bool ragged = columns < vectors * 16, finished = block.last && !ragged;
  const Parts strips(rows, most_rows);
  const float* lanes = job.w->group(block.g) + block.k * width;
  float masked[whole];
  if (block.even_only) {
    drop_odd(lanes, width, masked);
    lanes = masked;
  }
  if constexpr (widen) {
    widen_block(lanes, block.depth, width, widened);
    lanes = widened;
  }
  const int64_t steps = widen ? 2 * block.depth : block.depth, share = (block.depth * width * 4 / strips.count + steps) / (steps + 1);  // bytes a step
  for (int64_t i = 0; i < strips.count; ++i) {
    const int64_t row = strips.begin(i);
    float* put_aside = partial + row * whole;
    any_strip<Step>(strips.begin(i + 1) - row, vectors,
                    {.x = job.x + row * job.x_stride + block.k * floats,
                     .x_stride = job.x_stride,
                     .w = lanes,
                     .w_stride = width,
                     .steps = steps,
                     .from = block.first ? nullptr : put_aside,
                     .from_stride = whole,
                     .to = finished ? job.y + row * job.y_stride + column : put_aside,
                     .to_stride = finished ? job.y_stride : whole,
                     .bias = finished && job.bias ? job.bias + column : nullptr,
                     .accumulate = finished && job.accumulate,
                     .ahead = block.next + i * steps * share,
                     .ahead_step = share});
  }
  if (block.last && ragged) finish_ragged(job, rows, column, partial);
}

/// One piece. partial [groups_aside][piece_rows][48]; widened [block_depth][48] when `widen`.
template <class Step, bool widen>
void multiply(const Product& job, const Piece& piece, float* partial, float* widened) {
  constexpr int64_t whole = Panels::group_width;
  const Panels& w = *job.w;
  const bool few = !widen && piece.rows <= most_rows;
  // An odd number of bf16 inputs is padded by w; where a vocabulary is cut at an odd number, its last pair is masked: a block of its own.
  const int64_t tail = w.pairs() && job.inputs < w.inputs() ? job.inputs % 2 : 0, steps = w.pairs() ? (job.inputs + 1) / 2 - tail : job.inputs;
  const Parts blocks(steps, few ? std::max<int64_t>(1, steps) : w.pairs() ? block_depth / 2 : block_depth);

  int64_t g = piece.group_begin;
  if (few && tail == 0)
    g += whole_groups<Step>(piece.rows, std::min(piece.group_end, job.outputs / whole) - g,
                            {.x = job.x,
                             .x_stride = job.x_stride,
                             .w = w.group(g),
                             .w_stride = whole,
                             .group_stride = whole * w.steps(),
                             .steps = steps,
                             .to = job.y + g * whole,
                             .to_stride = job.y_stride,
                             .bias = job.bias ? job.bias + g * whole : nullptr,
                             .accumulate = job.accumulate});
  // A block of x is read by several groups before the next one is.
  for (; g < piece.group_end; g += groups_aside) {
    const int64_t end = std::min(g + groups_aside, piece.group_end), count = blocks.count + tail;
    for (int64_t b = 0; b < count; ++b) {
      const int64_t k = b < blocks.count ? blocks.begin(b) : steps, stop = b < blocks.count ? blocks.begin(b + 1) : steps + 1;
      for (int64_t h = g; h < end; ++h) {
        const float* next = h + 1 < end ? w.group(h + 1) + k * w.width(h + 1) : b + 1 < count ? w.group(g) + stop * w.width(g) : w.group(end);
        multiply_block<Step, widen>(job, piece.rows, {h, k, stop - k, b == 0, b + 1 == count, b == blocks.count, reinterpret_cast<const char*>(next)},
                                    partial + (h - g) * piece_rows * whole, widened);
      }
    }
  }
}

#if CG_ISA_LEVEL >= 3  // one instruction more than avx512: the rest is compiled once
void run_piece(Way way, const Product& job, const Piece& piece, float* partial, float* widened) {
  way == Way::dot ? multiply<Dot, false>(job, piece, partial, widened) : avx512::gemm::run_piece(way, job, piece, partial, widened);
}
#else
void run_piece(Way way, const Product& job, const Piece& piece, float* partial, float* widened) {
  switch (way) {
    case Way::fp32: return multiply<Fp32, false>(job, piece, partial, widened);
    case Way::widen: return multiply<Fp32, true>(job, piece, partial, widened);
    case Way::split: case Way::dot: return multiply<Split, false>(job, piece, partial, widened);
  }
}
#endif

}  // namespace cg::cpu::CG_ISA::gemm
