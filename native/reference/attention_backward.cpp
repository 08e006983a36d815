// Gradient of attention in two passes, without atomics: dq by query row, then dk and dv by slot (Dao et al. 2022, algorithm 4).
//
// With p = exp(s − lse), dp[j] = Σ_d dout[d] v[j][d], δ = Σ_d dout[d] out[d] (32 lanes) and ds = p · (dp − δ) · (1 / √D), each recomputed per pass:
//
//   dq[i] = Σ_j ds[i][j] k[j]      j by position ascending, one chain
//   dk[j] = Σ ds[i][j] q[i]        over query rows i = slot … subtree_end[slot] − 1 ascending and, within a row, the heads of the group ascending: one chain
//   dv[j] = Σ p[i][j] dout[i]      likewise
//
// A pair that the mask forbids adds p = ds = 0: a chain that starts from +0 keeps its bits.
#include "reference/attention.h"

namespace cg::reference {

namespace {

/// p and ds, both [..][64], of `count` pairs (rows row0 …, `rep` heads each) against a tile of `columns` slots, a multiple of 32; see(row, visible [64]) says
/// which slots a row sees.
template <class I, class See>
CG_INLINE void scores(I isa, const AttentionGradient& b, int64_t head, int64_t row0, int64_t count, const float* queries, const float* douts, const float* kt,
                      const float* vt, int64_t columns, float* p, float* ds, const See& see) {
  int32_t visible[tile_size];
  tiles_wide<Chain::begin>(isa, count, columns, queries, b.width, 1, Dense{kt, tile_size}, b.D, p, tile_size);
  tiles_wide<Chain::begin>(isa, count, columns, douts, b.width, 1, Dense{vt, tile_size}, b.D, ds, tile_size);
  for (int64_t row = row0; row < row0 + count / b.rep; ++row) {
    see(row, visible);
    for (int64_t h = head * b.rep; h < (head + 1) * b.rep; ++h, p += tile_size, ds += tile_size) {
      const float lse = b.lse.row(row)[h], delta = b.delta[row * b.q.n1 + h];
      for_lanes(columns, [&](int64_t j) CG_INLINE_LAMBDA {
        const float e = exp_f(p[j] * b.factor - lse);
        ds[j] = visible[j] ? e * (ds[j] - delta) * b.factor : 0.0f;
        p[j] = visible[j] ? e : 0.0f;
      });
    }
  }
}

/// Rows of x for the heads of one group, [count · rep][width].
CG_INLINE void group_rows(const View<float>& x, int64_t head, int64_t rep, int64_t begin, int64_t end, int64_t width, float* to) {
  for (int64_t row = begin; row < end; ++row)
    for (int64_t h = head * rep; h < (head + 1) * rep; ++h, to += width) {
      std::memcpy(to, x.row(row, h), size_t(x.n2) * 4);
      for (int64_t d = x.n2; d < width; ++d) to[d] = 0;
    }
}

void query_gradient(Threads& threads, const AttentionGradient& b, double flops) {
  constexpr int64_t block = 32;
  const int64_t R = b.q.n0, heads = b.k.n1, most = block * b.rep;
  threads.run((R + block - 1) / block * heads, 1, flops, [&](int64_t task_begin, int64_t task_end) {
    float* kt = scratch(0, 2 * b.D * tile_size + tile_size * b.width + most * (3 * b.width + 2 * tile_size));
    float* vt = kt + b.D * tile_size;
    float* keys = vt + b.D * tile_size;            // [64][width]
    float* queries = keys + tile_size * b.width;   // [rows · rep][width]
    float* douts = queries + most * b.width;
    float* sums = douts + most * b.width;
    float* p = sums + most * b.width;              // [..][64]
    float* ds = p + most * tile_size;
    for (int64_t task = task_begin; task < task_end; ++task) {
      const int64_t head = task % heads, begin = task / heads * block, end = std::min(begin + block, R), count = (end - begin) * b.rep;
      for_isa([&](auto isa) CG_INLINE_LAMBDA {
        group_rows(b.q, head, b.rep, begin, end, b.width, queries);
        group_rows(b.dout, head, b.rep, begin, end, b.width, douts);
        std::memset(sums, 0, size_t(count * b.width) * 4);
        for_each_tile(b.table, begin, end, [&](const TileRun& run) CG_INLINE_LAMBDA {
          const int64_t first = (run.begin - begin) * b.rep, pairs = (run.end - run.begin) * b.rep, columns = round_up(run.count, 32);
          gather_transposed(b.k, head, run.slots, run.count, kt);
          gather_transposed(b.v, head, run.slots, run.count, vt);
          gather_dense(b.k, head, run.slots, run.count, b.width, keys);
          scores(isa, b, head, run.begin, pairs, queries + first * b.width, douts + first * b.width, kt, vt, columns, p, ds,
                 [&](int64_t row, int32_t* visible) CG_INLINE_LAMBDA {
                   const int64_t seen = b.table.tile_end(row, run.tile) - run.from;
                   for_lanes(columns, [&](int64_t j) CG_INLINE_LAMBDA { visible[j] = j < seen; });
                 });
          tiles_wide<Chain::go_on>(isa, pairs, b.width, ds, tile_size, 1, Dense{keys, b.width}, run.count, sums + first * b.width, b.width);
        });
        for (int64_t row = begin, i = 0; row < end; ++row)
          for (int64_t h = head * b.rep; h < (head + 1) * b.rep; ++h, ++i) std::memcpy(b.dq.row(row, h), sums + i * b.width, size_t(b.D) * 4);
      });
    }
  });
}

void key_value_gradient(Threads& threads, const AttentionGradient& b, double flops) {
  constexpr int64_t block = 32;
  const int64_t R = b.q.n0, heads = b.k.n1, most = block * b.rep;
  threads.run((R + tile_size - 1) / tile_size * heads, 1, flops, [&](int64_t task_begin, int64_t task_end) {
    float* kt = scratch(0, 2 * b.D * tile_size + 2 * tile_size * b.width + most * (2 * b.width + 2 * tile_size));
    float* vt = kt + b.D * tile_size;
    float* dk = vt + b.D * tile_size;          // [64][width]
    float* dv = dk + tile_size * b.width;
    float* queries = dv + tile_size * b.width;  // [rows · rep][width]
    float* douts = queries + most * b.width;
    float* p = douts + most * b.width;          // [..][64]
    float* ds = p + most * tile_size;
    int32_t slots[tile_size], ends[tile_size] = {};
    for (int64_t task = task_begin; task < task_end; ++task) {
      const int64_t head = task % heads, slot0 = task / heads * tile_size, count = std::min(tile_size, R - slot0);
      int64_t last = 0;
      for (int64_t j = 0; j < tile_size; ++j) {
        slots[j] = int32_t(slot0 + j);
        ends[j] = j < count ? b.subtree_end.data[slot0 + j] : 0;
        last = std::max<int64_t>(last, ends[j]);
      }
      for_isa([&](auto isa) CG_INLINE_LAMBDA {
        gather_transposed(b.k, head, slots, count, kt);
        gather_transposed(b.v, head, slots, count, vt);
        std::memset(dk, 0, size_t(2 * tile_size * b.width) * 4);
        for (int64_t begin = slot0; begin < last; begin += block) {
          const int64_t end = std::min(begin + block, last), pairs = (end - begin) * b.rep;
          int64_t low = tile_size, high = 0;  // the slots that any of these rows sees lie in [low, high)
          for (int64_t j = 0; j < count; ++j) {
            if (slots[j] >= end || ends[j] <= begin) continue;
            low = std::min(low, j);
            high = j + 1;
          }
          if (high == 0) continue;
          low -= low % lanes;
          group_rows(b.q, head, b.rep, begin, end, b.width, queries);
          group_rows(b.dout, head, b.rep, begin, end, b.width, douts);
          scores(isa, b, head, begin, pairs, queries, douts, kt + low, vt + low, round_up(high - low, lanes), p, ds,
                 [&](int64_t row, int32_t* visible) CG_INLINE_LAMBDA {
                   for_lanes(round_up(high - low, lanes),
                             [&](int64_t j) CG_INLINE_LAMBDA { visible[j] = slots[low + j] <= int32_t(row) && int32_t(row) < ends[low + j]; });
                 });
          tiles_wide<Chain::go_on>(isa, high - low, b.width, ds, 1, tile_size, Dense{queries, b.width}, pairs, dk + low * b.width, b.width);
          tiles_wide<Chain::go_on>(isa, high - low, b.width, p, 1, tile_size, Dense{douts, b.width}, pairs, dv + low * b.width, b.width);
        }
        for (int64_t j = 0; j < count; ++j) {
          std::memcpy(b.dk.row(slot0 + j, head), dk + j * b.width, size_t(b.D) * 4);
          std::memcpy(b.dv.row(slot0 + j, head), dv + j * b.width, size_t(b.D) * 4);
        }
      });
    }
  });
}

}  // namespace

void ReferenceBackend::attention_backward(Queue& queue, Tensor dout_t, Tensor q_t, Tensor k_t, Tensor v_t, Tensor out_t, Tensor lse_t,
                                          const AttentionTable& table_t, Tensor dq_t, Tensor dk_t, Tensor dv_t, Tensor workspace_t) {
  enqueue(queue, [&] {
    AttentionGradient b;
    b.dout = view<float>(dout_t), b.q = view<float>(q_t), b.k = view<float>(k_t), b.v = view<float>(v_t), b.lse = view<float>(lse_t);
    b.dq = view<float>(dq_t), b.dk = view<float>(dk_t), b.dv = view<float>(dv_t), b.out = view<float>(out_t);
    const int64_t R = b.q.n0;
    if (R == 0) return;
    CG_INVARIANT(b.k.n0 == R && b.v.n0 == R && b.dk.n0 == R && b.dv.n0 == R && b.dq.n0 == R && b.dout.n0 == R && b.out.n0 == R && b.lse.n0 == R &&
                 b.lse.n2 == b.q.n1);
    CG_INVARIANT(b.q.n1 % b.k.n1 == 0 && b.k.n2 == b.q.n2 && b.v.n2 == b.q.n2);
    b.table = checked(view<int32_t>(table_t.position), view<int32_t>(table_t.first), view<int32_t>(table_t.table), view<int32_t>(table_t.gather), R, R);
    b.subtree_end = view<int32_t>(table_t.subtree_end);
    CG_INVARIANT(b.subtree_end.n0 == R);
    check_index(b.subtree_end, R + 1, "subtree end");
    b.rep = b.q.n1 / b.k.n1, b.D = b.q.n2, b.width = round_up(b.D, 16), b.factor = 1 / __builtin_sqrtf(float(b.D));
    CG_INVARIANT(workspace_t.size() >= R * b.q.n1);
    b.delta = view<float>(workspace_t).data;
    b.pairs = visible_pairs(b.table, R);
    attend_backward(b);
  });
}

void ReferenceBackend::attend_backward(const AttentionGradient& b) {
  for_isa([&](auto) CG_INLINE_LAMBDA {
    for (int64_t i = 0; i < b.q.n0; ++i)
      for (int64_t h = 0; h < b.q.n1; ++h) {
        const float *dr = b.dout.row(i, h), *o = b.out.row(i, h);
        b.delta[i * b.q.n1 + h] = sum_of(b.D, [&](int64_t d) CG_INLINE_LAMBDA { return dr[d] * o[d]; });
      }
  });
  query_gradient(threads_, b, 6.0 * b.pairs * double(b.q.n1 * b.D));
  key_value_gradient(threads_, b, 8.0 * b.pairs * double(b.q.n1 * b.D));
}

}  // namespace cg::reference
