// Attention, forward: one task for each block of query rows and key head.
#include "cpu/attention.h"
#include "cpu/backend.h"

namespace cg::cpu {

namespace {

struct ForwardScratch {
  float *queries, *o;   // [pairs][width]
  float *m, *l;         // [pairs]
  float* keys;          // [D][64]
  float* values;        // [64][width]
  float* scores;        // [group][64]
};

ForwardScratch forward_scratch(Cut& cut, int64_t pairs, int64_t width) {
  ForwardScratch s;
  s.queries = cut.take(pairs * width), s.o = cut.take(pairs * width);
  s.m = cut.take(pairs), s.l = cut.take(pairs);
  s.keys = cut.take(width * tile_size), s.values = cut.take(tile_size * width), s.scores = cut.take(pair_group * tile_size);
  return s;
}

}  // namespace

}  // namespace cg::cpu

#define CG_KERNELS "cpu/attention_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

TilePlan::TilePlan(reference::Threads& threads, const TableView& table, int64_t R, int64_t rows, double pairs) {
  for (int64_t i = 0; i < R; ++i) {
    const int64_t now = i - (blocks_.empty() ? 0 : blocks_.back().begin);
    const bool crosses = i > 0 && table.position[i] % tile_size == 0 && table.position[i] == table.position[i - 1] + 1;
    if (blocks_.empty() || now >= rows + rows / 2 || (crosses && now >= rows / 2)) blocks_.push_back({i, i, {}});
    blocks_.back().end = i + 1;
    most_ = std::max(most_, i + 1 - blocks_.back().begin);
  }
  threads.run(int64_t(blocks_.size()), 1, pairs / 4, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Block& block = blocks_[size_t(i)];
      reference::for_each_tile(table, block.begin, block.end, [&](const reference::TileRun& run) {
        bool consecutive = true;
        for (int64_t j = 1; j < run.count; ++j) consecutive &= run.slots[j] == run.slots[0] + j;
        block.tiles.push_back({run, consecutive});
      });
    }
  });
}

int64_t block_rows(int64_t R, int64_t heads, int threads) {
  int64_t rows = 64;
  while (rows > 8 && (R + rows - 1) / rows * heads < 4 * threads && threads > 1) rows /= 2;
  return rows;
}

void CpuBackend::attend(const AttentionOperands& t) {
  const int64_t R = t.q.n0, heads = t.v.n1;
  const TilePlan plan(threads_, t.table, R, block_rows(R, heads, threads_.count()), t.pairs);
  threads_.run(int64_t(plan.blocks().size()) * heads, 1, 4.0 * t.pairs * double(t.q.n1 * t.D), [&](int64_t first, int64_t last) {
    Cut size;
    forward_scratch(size, plan.most() * t.rep, t.width);
    Cut cut(reference::scratch(0, size.used()));
    const ForwardScratch s = forward_scratch(cut, plan.most() * t.rep, t.width);
    for (int64_t task = first; task < last; ++task) CG_FOR_ISA(attend(t, s, task % heads, plan.blocks()[size_t(task / heads)]));
  });
}

}  // namespace cg::cpu
