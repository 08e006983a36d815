// The products of the CPU backend: how a product is cut into pieces, and which kernel does them.
#include "cpu/gemm.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "cpu/bf16_way.h"
#include "reference/denormals.h"
#include "reference/isa.h"

namespace cg::cpu::avx512::gemm {
void run_piece(Way, const Product&, const Piece&, float* partial, float* widened);
}

#define CG_KERNELS "cpu/gemm_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

namespace {

/// How a product is cut: enough pieces for all threads, each with many groups, so that its rows stay in the cache.
struct Cut {
  int64_t rows, groups, row_blocks, group_blocks;
  Cut(int64_t rows, int64_t groups, int threads) : rows(rows), groups(groups), row_blocks((rows + piece_rows - 1) / piece_rows) {
    const int64_t wanted = threads == 1 ? 1 : (4 * threads + row_blocks - 1) / row_blocks;
    const int64_t least = rows <= few_rows ? 4 : 1;  // groups side by side
    const int64_t chunk = std::max(least, (groups + wanted - 1) / wanted);
    group_blocks = (groups + chunk - 1) / chunk;
  }
  int64_t count() const { return row_blocks * group_blocks; }
  Piece piece(int64_t i) const {
    const int64_t r = i / group_blocks, g = i % group_blocks;
    return {rows * r / row_blocks, rows * (r + 1) / row_blocks, groups * g / group_blocks, groups * (g + 1) / group_blocks};
  }
};

}  // namespace

void run_piece(Way way, const Product& job, const Piece& piece, float* partial, float* widened) { CG_FOR_ISA(gemm::run_piece(way, job, piece, partial, widened)); }

void round_rows(Way way, const float* x, int64_t x_stride, int64_t rows, int64_t n, float* to, int64_t to_stride) {
  CG_FOR_ISA(gemm::round_rows(way, x, x_stride, rows, n, to, to_stride));
}

void multiply(reference::Threads& threads, const reference::View<float>& x, const Panels& w, const float* bias, bool accumulate, const reference::View<float>& y) {
  const Way way = !w.pairs() ? Way::fp32 : bf16_way(x.n0);
  Product job{&w, x.data, x.s0, x.n2, y.n2, bias, accumulate, y.data, y.s0};
  if (w.pairs()) {
    const int64_t stride = rounded_stride(way, x.n2);
    float* rows = reference::scratch(3, x.n0 * stride);
    threads.run(x.n0, 16, 8.0 * double(x.n0 * x.n2), [&](int64_t begin, int64_t end) { round_rows(way, x.row(begin), x.s0, end - begin, x.n2, rows + begin * stride, stride); });
    job.x = rows;
    job.x_stride = stride;
  }
  const Cut cut(x.n0, (y.n2 + Panels::group_width - 1) / Panels::group_width, threads.count());
  threads.run(cut.count(), 1, 2.0 * double(x.n0 * x.n2 * y.n2), [&](int64_t begin, int64_t end) {
    float* partial = reference::scratch(0, piece_rows * Panels::group_width);
    float* widened = way == Way::widen ? reference::scratch(1, block_depth * Panels::group_width) : nullptr;
    std::optional<reference::FlushDenormals> flush;
    if (w.pairs()) flush.emplace();
    for (int64_t i = begin; i < end; ++i) run_piece(way, job, cut.piece(i), partial, widened);
  });
}

}  // namespace cg::cpu
