// The products of the CPU backend: how a product is cut into pieces, and which kernel does them.
#include "cpu/gemm.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "cpu/bf16_way.h"
#include "reference/denormals.h"
#include "reference/isa.h"
#include "reference/tile.h"

namespace cg::cpu::avx512::gemm {
void run_piece(Way, const Product&, const Piece&, float* partial, float* widened);
}

#define CG_KERNELS "cpu/gemm_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

namespace {

using reference::parts;

/// How a product is cut: enough pieces for all threads, with several groups each, or rows would be rounded and read for little.
struct Cut {
  int64_t rows, groups, row_blocks, group_blocks;

  Cut(int64_t rows, int64_t groups, int threads) : rows(rows), groups(groups), row_blocks(parts(rows, piece_rows)), group_blocks(1) {
    if (threads == 1) return;
    group_blocks = std::clamp<int64_t>(parts(4 * threads, row_blocks), 1, std::max<int64_t>(1, groups / 4));
    if (row_blocks * group_blocks < 2 * threads) row_blocks = std::max(row_blocks, std::min(parts(2 * threads, group_blocks), rows / 16));
  }
  int64_t count() const { return row_blocks * group_blocks; }
  int64_t row(int64_t block) const { return rows * block / row_blocks; }
  int64_t group(int64_t block) const { return groups * block / group_blocks; }
};

}  // namespace

void run_piece(Way way, const Product& job, const Piece& piece, float* partial, float* widened) {
  CG_FOR_ISA(gemm::run_piece(way, job, piece, partial, widened));
}

void multiply(reference::Threads& threads, const reference::View<float>& x, const Panels& w, const float* bias, bool accumulate,
              const reference::View<float>& y) {
  const Way way = !w.pairs() ? Way::fp32 : bf16_way(x.n0);
  const Cut cut(x.n0, (y.n2 + Panels::group_width - 1) / Panels::group_width, threads.count());
  threads.run(cut.count(), 1, 2.0 * double(x.n0 * x.n2 * y.n2), [&](int64_t begin, int64_t end) {
    float* partial = reference::scratch(0, groups_aside * piece_rows * Panels::group_width);
    float* widened = way == Way::widen ? reference::scratch(1, block_depth * Panels::group_width) : nullptr;
    std::optional<reference::FlushDenormals> flush;
    if (w.pairs()) flush.emplace();
    int64_t rounded = -1;  // the block of rows that is in scratch
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / cut.group_blocks, g = i % cut.group_blocks, row = cut.row(r), rows = cut.row(r + 1) - row;
      Product job{&w, x.row(row), x.s0, x.n2, y.n2, bias, accumulate, y.row(row), y.s0};
      if (w.pairs()) {
        job.x_stride = rounded_stride(way, x.n2);
        float* to = reference::scratch(2, piece_rows * job.x_stride);
        if (rounded != r) round_rows(way, x.row(row), x.s0, rows, x.n2, to, job.x_stride);
        rounded = r;
        job.x = to;
      }
      run_piece(way, job, {rows, cut.group(g), cut.group(g + 1)}, partial, widened);
    }
  });
}

}  // namespace cg::cpu
