// Attention, forward: the checks of the reference, then one task for each block of query rows and key head.
#include "cpu/attention.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "cpu/backend.h"

namespace cg::cpu {

namespace {

struct AttentionOperands {
  View<float> q, v, out, lse;
  Keys k;
  TableView table;
  int64_t rep, D, width;  // width: D rounded up to 16
  float factor;           // 1 / √D
};

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

TilePlan::TilePlan(reference::Threads& threads, const TableView& table, int64_t R, int64_t rows) {
  for (int64_t i = 0; i < R; ++i) {
    const int64_t now = i - (blocks_.empty() ? 0 : blocks_.back().begin);
    const bool crosses = i > 0 && table.position[i] % tile_size == 0 && table.position[i] == table.position[i - 1] + 1;
    if (blocks_.empty() || now >= rows + rows / 2 || (crosses && now >= rows / 2)) blocks_.push_back({i, i, {}});
    blocks_.back().end = i + 1;
    most_ = std::max(most_, i + 1 - blocks_.back().begin);
  }
  threads.run(int64_t(blocks_.size()), 1, visible_pairs(table, R) / 4, [&](int64_t first, int64_t last) {
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

double visible_pairs(const TableView& table, int64_t R) {
  double pairs = 0;
  for (int64_t i = 0; i < R; ++i) pairs += table.position[i] - table.first[i] + 1;
  return pairs;
}

void CpuBackend::attention(Queue& queue, Tensor q_t, Tensor k_t, Tensor v_t, const AttentionTable& table_t, Tensor out_t, Tensor lse_t, Tensor) {
  enqueue(queue, [&] {
    AttentionOperands t;
    t.q = view<float>(q_t), t.v = view<float>(v_t), t.out = view<float>(out_t), t.lse = lse_t ? view<float>(lse_t) : View<float>{};
    const View<float>&q = t.q, &v = t.v;
    if (q.n0 == 0) return;
    t.D = q.n2, t.width = round_up(t.D, 16), t.rep = q.n1 / v.n1, t.factor = 1 / __builtin_sqrtf(float(t.D));
    t.k = {view<float>(k_t), k_t.rank == 4, t.D};
    CG_INVARIANT(q.n1 % v.n1 == 0 && v.n2 == t.D && t.out.n0 == q.n0 && t.out.n1 == q.n1 && t.out.n2 == t.D);
    CG_INVARIANT(t.k.slots() == v.n0 && t.k.x.n1 == v.n1 && t.k.x.n2 == (t.k.paged ? t.D * page_size : t.D));
    CG_INVARIANT(!t.lse.data || (t.lse.n0 == q.n0 && t.lse.n2 == q.n1));
    t.table = reference::checked(view<int32_t>(table_t.position), view<int32_t>(table_t.first), view<int32_t>(table_t.table), view<int32_t>(table_t.gather),
                                 q.n0, v.n0);
    const int64_t heads = v.n1;
    const TilePlan plan(threads_, t.table, q.n0, block_rows(q.n0, heads, threads_.count()));
    threads_.run(int64_t(plan.blocks().size()) * heads, 1, 4.0 * visible_pairs(t.table, q.n0) * double(q.n1 * t.D), [&](int64_t first, int64_t last) {
      Cut size;
      forward_scratch(size, plan.most() * t.rep, t.width);
      Cut cut(reference::scratch(0, size.used()));
      const ForwardScratch s = forward_scratch(cut, plan.most() * t.rep, t.width);
      for (int64_t task = first; task < last; ++task) CG_FOR_ISA(attend(t, s, task % heads, plan.blocks()[size_t(task / heads)]));
    });
  });
}

}  // namespace cg::cpu
