// Gradient of attention for one block of query rows and one key head, in one pass (arithmetic: reference/attention_backward.cpp, whose bits these are).
//
// Per tile of 64 positions, the block's pairs of a row and a query head in groups of 48:
//
//   p  [48, 64] = exp(q · kᵀ / √D − lse)         dp [48, 64] = dout · vᵀ         ds = p · (dp − δ) / √D         p, ds = 0 where the mask forbids
//   dq [48, D] += ds [48, 64] · k [64, D]        dk [64, D] += dsᵀ · q           dv [64, D] += pᵀ · dout
//
// A tile's dk and dv go on from what earlier blocks left in them, so that a slot's chain has its rows in order: `turn` waits for those blocks.
#include "cpu/vec_math.h"
#include "cpu/register_tile.h"
#include "cpu/attention_tiles.h"

namespace cg::cpu::CG_ISA {

/// Chains from +0, stored in rows of 64.
struct TileScores {
  float* to;

  CG_INLINE Vec begin(int64_t, int64_t) const { return zero(); }
  template <int C>
  CG_INLINE void end(int64_t row, int64_t column, const Vec* sum) const {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store(to + row * tile_size + column + 16 * c, sum[c]);
  }
};

/// Chains that continue what rows anywhere hold.
struct RowSums {
  float* const* rows;

  CG_INLINE Vec begin(int64_t row, int64_t column) const { return load(rows[row] + column); }
  template <int C>
  CG_INLINE void end(int64_t row, int64_t column, const Vec* sum) const {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store(rows[row] + column + 16 * c, sum[c]);
  }
};

/// Scores and dp of one pair become p and ds, N vectors of them.
template <int N>
CG_INLINE void pair_gradient(float* p, float* ds, int64_t seen, Vec factor, Vec lse, Vec delta) {
  Vec x[N], y[N];
  for (int c = 0; c < N; ++c) x[c] = sub(mul(load(p + 16 * c), factor), lse);
  exp(x);
  for (int c = 0; c < N; ++c) y[c] = mul(mul(x[c], sub(load(ds + 16 * c), delta)), factor);
  if (seen < 16 * N)
    for (int c = 0; c < N; ++c) {
      x[c] = first_of(x[c], seen - 16 * c, zero());
      y[c] = first_of(y[c], seen - 16 * c, zero());
    }
  for (int c = 0; c < N; ++c) {
    store(p + 16 * c, x[c]);
    store(ds + 16 * c, y[c]);
  }
}

/// p and ds of n pairs, as far as one of them sees.
inline void pair_gradients(const BackwardScratch& s, int64_t at, int64_t n, int64_t width, int64_t D, float factor_, const int32_t* seen, int64_t columns) {
  TileScores scores{s.p}, products{s.ds};
  tiles({s.queries + at * width, width, 1}, s.keys_t, tile_size, D, scores, 0, n, columns);
  tiles({s.douts + at * width, width, 1}, s.values_t, tile_size, D, products, 0, n, columns);
  const Vec factor = broadcast(factor_);
  for (int64_t i = 0; i < n; ++i) {
    const Vec lse = broadcast(s.lse[at + i]), delta = broadcast(s.delta[at + i]);
    float *p = s.p + i * tile_size, *ds = s.ds + i * tile_size;
    if (columns == 4) pair_gradient<4>(p, ds, seen[i], factor, lse, delta);
    else if (columns == 3) pair_gradient<3>(p, ds, seen[i], factor, lse, delta);
    else if (columns == 2) pair_gradient<2>(p, ds, seen[i], factor, lse, delta);
    else pair_gradient<1>(p, ds, seen[i], factor, lse, delta);
  }
}

/// sums[j] += Σ_i weights[i][j] rows[i] for j < most, pairs i ascending from the first that sees slot j on (those before add ±0).
inline void add_pairs(const float* weights, const float* rows, int64_t width, const int32_t* seen, int64_t n, int64_t most, float* const* sums) {
  constexpr int64_t together = 12;  // slots
  RowSums ends{sums};
  int64_t i = 0;
  for (int64_t j = 0; j < most;) {
    while (i < n && seen[i] <= j) ++i;  // all before i see slots below j only
    const int64_t stop = i < n && seen[i] < most && j + together < most ? j + together : most;
    tiles({weights + i * tile_size, 1, tile_size}, rows + i * width, width, n - i, ends, j, stop, width / 16);
    j = stop;
  }
}

/// δ = Σ_d dout · out of the block's pairs: 32 lanes, joined for 16 pairs at once.
inline void output_products(const View<float>& out, const float* douts, int64_t width, int64_t head, int64_t rep, int64_t begin, int64_t pairs, float* delta) {
  alignas(64) float sums[16][16];
  for (int64_t i = 0; i < pairs; i += 16) {
    for (int64_t l = 0; l < 16 && i + l < pairs; ++l) {
      const float *o = out.data + (begin + (i + l) / rep) * out.s0 + (head * rep + (i + l) % rep) * out.s1, *dout = douts + (i + l) * width;
      Vec lanes[2] = {zero(), zero()};
      for (int64_t d = 0; d < width; d += 16) {
        Vec& sum = lanes[d / 16 % 2];
        sum = add(sum, mul(load(dout + d), load_first(o + d, out.n2 - d)));
      }
      store(sums[l], add(lanes[0], lanes[1]));
    }
    store_first(delta + i, join_rows<Sum>(sums), pairs - i);
  }
}

inline void attend_backward(const AttentionGradient& t, const BackwardScratch& s, int64_t head, const Block& block, Turns::Turn& turn) {
  const int64_t D = t.D, width = t.width, rep = t.rep, begin = block.begin, end = block.end, pairs = (end - begin) * rep;
  int32_t seen[pair_group];
  float *dk[tile_size], *dv[tile_size], *dq[pair_group];
  copy_group(t.q, head, rep, begin, end, width, s.queries);
  copy_group(t.dout, head, rep, begin, end, width, s.douts);
  output_products(t.out, s.douts, width, head, rep, begin, pairs, s.delta);
  for (int64_t i = 0; i < pairs; ++i) s.lse[i] = t.lse.data[(begin + i / rep) * t.lse.s0 + head * rep + i % rep];
  for (int64_t i = 0; i < pairs * width; i += 16) store(s.dq + i, zero());
  for (int64_t row = begin; row < end; ++row)
    for (int64_t d = 0; d < D; d += 16) {
      store_first(t.dk.data + row * t.dk.s0 + head * t.dk.s1 + d, zero(), D - d);
      store_first(t.dv.data + row * t.dv.s0 + head * t.dv.s1 + d, zero(), D - d);
    }
  for (const Tile& tile : block.tiles) {
    turn.go_to(tile.tile);
    transpose_tile(t.k, head, tile.slots, tile.count, s.keys_t);
    transpose_tile(t.v, head, tile.slots, tile.count, s.values_t);
    copy_tile(t.k, head, tile.slots, tile.count, width, s.keys);
    turn.wait();
    const bool padded = width != D;
    for (int64_t j = 0; j < tile.count; ++j) {
      dk[j] = padded ? s.dk + j * width : t.dk.data + tile.slots[j] * t.dk.s0 + head * t.dk.s1;
      dv[j] = padded ? s.dv + j * width : t.dv.data + tile.slots[j] * t.dv.s0 + head * t.dv.s1;
    }
    if (padded) {
      copy_tile(t.dk, head, tile.slots, tile.count, width, s.dk);
      copy_tile(t.dv, head, tile.slots, tile.count, width, s.dv);
    }
    for (int64_t at = (tile.begin - begin) * rep, last = (tile.end - begin) * rep; at < last; at += pair_group) {
      const int64_t n = last - at < pair_group ? last - at : pair_group, most = visible_slots(t.table, tile, begin, rep, at, at + n, seen);
      pair_gradients(s, at, n, width, D, t.factor, seen, (most + 15) / 16);
      for (int64_t i = 0; i < n; ++i) dq[i] = s.dq + (at + i) * width;
      RowSums query_sums{dq};
      tiles({s.ds, tile_size, 1}, s.keys, width, most, query_sums, 0, n, width / 16);
      add_pairs(s.ds, s.queries + at * width, width, seen, n, most, dk);
      add_pairs(s.p, s.douts + at * width, width, seen, n, most, dv);
    }
    for (int64_t j = 0; padded && j < tile.count; ++j)
      for (int64_t d = 0; d < D; d += 16) {
        store_first(t.dk.data + tile.slots[j] * t.dk.s0 + head * t.dk.s1 + d, load(dk[j] + d), D - d);
        store_first(t.dv.data + tile.slots[j] * t.dv.s0 + head * t.dv.s1 + d, load(dv[j] + d), D - d);
      }
  }
  for (int64_t i = 0; i < pairs; ++i) {
    float* to = t.dq.data + (begin + i / rep) * t.dq.s0 + (head * rep + i % rep) * t.dq.s1;
    for (int64_t d = 0; d < D; d += 16) store_first(to + d, load(s.dq + i * width + d), D - d);
  }
}

}  // namespace cg::cpu::CG_ISA
