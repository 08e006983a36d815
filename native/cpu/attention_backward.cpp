// Attention, backward: the checks of the reference, then one task for each block of query rows and key head.
#include "cpu/attention.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "cpu/backend.h"
#include "cpu/turns.h"

namespace cg::cpu {

namespace {

struct BackwardOperands {
  View<float> dout, q, k, v, out, lse, dq, dk, dv;
  TableView table;
  int64_t rep, D, width;  // width: D rounded up to 16
  float factor;           // 1 / √D
};

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

void CpuBackend::attention_backward(Queue& queue, Tensor dout_t, Tensor q_t, Tensor k_t, Tensor v_t, Tensor out_t, Tensor lse_t, const AttentionTable& table_t,
                                    Tensor dq_t, Tensor dk_t, Tensor dv_t, Tensor) {
  enqueue(queue, [&] {
    BackwardOperands t;
    t.dout = view<float>(dout_t), t.q = view<float>(q_t), t.k = view<float>(k_t), t.v = view<float>(v_t), t.out = view<float>(out_t);
    t.lse = view<float>(lse_t), t.dq = view<float>(dq_t), t.dk = view<float>(dk_t), t.dv = view<float>(dv_t);
    const int64_t R = t.q.n0, heads = t.k.n1;
    if (R == 0) return;
    CG_INVARIANT(t.k.n0 == R && t.v.n0 == R && t.dk.n0 == R && t.dv.n0 == R && t.dq.n0 == R && t.dout.n0 == R && t.out.n0 == R && t.lse.n0 == R &&
                 t.lse.n2 == t.q.n1);
    CG_INVARIANT(t.q.n1 % heads == 0 && t.k.n2 == t.q.n2 && t.v.n2 == t.q.n2);
    t.table = reference::checked(view<int32_t>(table_t.position), view<int32_t>(table_t.first), view<int32_t>(table_t.table), view<int32_t>(table_t.gather),
                                 R, R);
    t.rep = t.q.n1 / heads, t.D = t.q.n2, t.width = round_up(t.D, 16), t.factor = 1 / __builtin_sqrtf(float(t.D));
    const TilePlan plan(threads_, t.table, R, block_rows(R, heads, threads_.count()));
    const int64_t blocks = int64_t(plan.blocks().size());
    std::vector<std::unique_ptr<Turns>> turns;
    for (int64_t head = 0; head < heads; ++head) turns.push_back(std::make_unique<Turns>(blocks));
    threads_.run(blocks * heads, 1, 10.0 * visible_pairs(t.table, R) * double(t.q.n1 * t.D), [&](int64_t first, int64_t last) {
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
  });
}

}  // namespace cg::cpu
