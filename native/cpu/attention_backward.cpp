// Attention, backward: one task for each block of query rows and key head.
#include "cpu/attention.h"
#include "cpu/backend.h"
#include "cpu/turns.h"

namespace cg::cpu {

namespace {

struct BackwardScratch {
  float *queries, *douts, *dq;  // [pairs][width]
  float *lse, *delta;           // [pairs]
  float *keys_t, *values_t;     // [D][64]
  float *keys, *dk, *dv;        // [64][width]
  float *p, *ds;                // [group][64]
};

BackwardScratch backward_scratch(Cut& cut, int64_t pairs, int64_t width) {
  BackwardScratch s;
  s.queries = cut.take(pairs * width), s.douts = cut.take(pairs * width), s.dq = cut.take(pairs * width);
  s.lse = cut.take(pairs), s.delta = cut.take(pairs);
  s.keys_t = cut.take(width * tile_size), s.values_t = cut.take(width * tile_size);
  s.keys = cut.take(tile_size * width), s.dk = cut.take(tile_size * width), s.dv = cut.take(tile_size * width);
  s.p = cut.take(pair_group * tile_size), s.ds = cut.take(pair_group * tile_size);
  return s;
}

}  // namespace

}  // namespace cg::cpu

#define CG_KERNELS "cpu/attention_backward_kernels.h"
#include "cpu/for_each_isa.h"

namespace cg::cpu {

void CpuBackend::attend_backward(const AttentionGradient& t) {
  const int64_t R = t.q.n0, heads = t.k.n1;
  const TilePlan plan(threads_, t.table, R, block_rows(R, heads, threads_.count()), t.pairs);
  const int64_t blocks = int64_t(plan.blocks().size());
  std::vector<std::unique_ptr<Turns>> turns;
  for (int64_t head = 0; head < heads; ++head) turns.push_back(std::make_unique<Turns>(blocks));
  threads_.run(blocks * heads, 1, 10.0 * t.pairs * double(t.q.n1 * t.D), [&](int64_t first, int64_t last) {
    Cut size;
    backward_scratch(size, plan.most() * t.rep, t.width);
    Cut cut(reference::scratch(0, size.used()));
    const BackwardScratch s = backward_scratch(cut, plan.most() * t.rep, t.width);
    for (int64_t task = first; task < last; ++task) {
      const int64_t block = task / heads, head = task % heads;
      Turns::Turn turn(*turns[size_t(head)], block);
      CG_FOR_ISA(attend_backward(t, s, head, plan.blocks()[size_t(block)], turn));
    }
  });
}

}  // namespace cg::cpu
