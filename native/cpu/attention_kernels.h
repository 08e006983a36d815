// Attention of one block of query rows and one key head (arithmetic: reference/attention.cpp, whose bits these are).
//
// The block's pairs of a row and a query head, M = rows · rep, are the tall side of two products per tile of 64 positions, in groups of 48 pairs:
//
//   s [48, 64] = q [48, D] · kᵀ [D, 64]     scaled, masked and the largest of 16 lanes noted as the register tile is stored
//   p = exp(s − m), l = l · c + Σ p         rows' maxima and sums are joined for 16 rows at once
//   o [48, D] = o · c + p [48, 64] · v      as far as all rows of a register tile see, then each row alone: a row's chain has its own positions only
#include "cpu/vec_math.h"
#include "cpu/register_tile.h"
#include "cpu/attention_tiles.h"

namespace cg::cpu::CG_ISA {

struct ScaledScores {
  float* scores;  // [..][64]
  float (*tops)[16];
  const int32_t* seen;
  Vec factor;

  CG_INLINE Vec begin(int64_t, int64_t) const { return zero(); }
  template <int C>
  CG_INLINE void end(int64_t row, int64_t column, const Vec* sum) const {
    float* to = scores + row * tile_size + column;
    const Vec none = broadcast(-__builtin_inff());
    const int64_t n = seen[row] - column;
    Vec top = column == 0 ? none : load(tops[row]);
    if (n >= 16 * C) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        const Vec x = mul(sum[c], factor);
        store(to + 16 * c, x);
        top = larger(x, top);
      }
    } else {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        const Vec x = first_of(mul(sum[c], factor), n - 16 * c, none);  // becomes p = 0, which changes no sum
        store(to + 16 * c, x);
        top = larger(x, top);
      }
    }
    store(tops[row], top);
  }
};

/// Chains that continue what `sums` holds.
struct Sums {
  float* sums;
  int64_t stride;

  CG_INLINE Vec begin(int64_t row, int64_t column) const { return load(sums + row * stride + column); }
  template <int C>
  CG_INLINE void end(int64_t row, int64_t column, const Vec* sum) const {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store(sums + row * stride + column + 16 * c, sum[c]);
  }
};

/// Chains that continue what it holds times a row's scale.
struct ScaledSums : Sums {
  const float* scale;  // [rows]

  CG_INLINE Vec begin(int64_t row, int64_t column) const { return mul(Sums::begin(row, column), broadcast(scale[row])); }
};

/// p = exp(s − m) in place for N vectors; returns the sums of lanes j and j + 16.
template <int N>
CG_INLINE Vec weights(float* p, Vec m) {
  Vec x[N];
  for (int c = 0; c < N; ++c) x[c] = sub(load(p + 16 * c), m);
  exp(x);
  for (int c = 0; c < N; ++c) store(p + 16 * c, x[c]);
  if constexpr (N == 1) return x[0];
  if constexpr (N == 2) return add(x[0], x[1]);
  if constexpr (N == 3) return add(add(x[0], x[2]), x[1]);
  if constexpr (N == 4) return add(add(x[0], x[2]), add(x[1], x[3]));
}
CG_INLINE Vec weights(float* p, int64_t seen, Vec m) {
  if (seen > 48) return weights<4>(p, m);
  if (seen > 32) return weights<3>(p, m);
  return seen > 16 ? weights<2>(p, m) : weights<1>(p, m);
}

/// o [n][16 C] = o · c + p · v at `column`.
template <int C>
CG_INLINE void add_values(const float* p, const int32_t* seen, int64_t n, const float* v, int64_t v_row, ScaledSums o, int64_t column) {
  constexpr int R = rows_for(C);
  for (int64_t i = 0; i < n; i += R) {
    const int64_t stop = i + R < n ? i + R : n;
    int64_t shared = seen[i], most = seen[i];
    for (int64_t r = i + 1; r < stop; ++r) {
      shared = seen[r] < shared ? seen[r] : shared;
      most = seen[r] > most ? seen[r] : most;
    }
    tile_rows<C, R>({p, tile_size, 1}, v, v_row, shared, o, i, stop, column);
    if (most == shared) continue;
    Sums rest = o;
    for (int64_t r = i; r < stop; ++r) register_tile<1, C>({p + shared, tile_size, 1}, v + shared * v_row, v_row, seen[r] - shared, rest, r, column);
  }
}

/// Scores of n pairs against a tile, and what they add to the pairs' running maxima: c = exp(m − m'), m = m'.
inline void score_pairs(const float* queries, int64_t width, int64_t D, const float* keys, float factor, const int32_t* seen, int64_t n, float* scores,
                        float* m, float* c) {
  constexpr int64_t high = rows_for(4);
  alignas(64) float tops[pair_group][16];
  ScaledScores ends{scores, tops, seen, broadcast(factor)};
  for (int64_t i = 0; i < n; i += high) {
    const int64_t stop = i + high < n ? i + high : n;
    int64_t most = 0;
    for (int64_t r = i; r < stop; ++r) most = seen[r] > most ? seen[r] : most;
    tiles({queries, width, 1}, keys, tile_size, D, ends, i, stop, (most + 15) / 16);
  }
  for (int64_t i = 0; i < n; i += 16) {
    const Vec before = load(m + i), now = larger(before, join_rows<Largest>(tops + i));
    store(c + i, exp(sub(before, now)));
    store_first(m + i, now, n - i);
  }
}

/// Scores become weights, l = l · c + their sum.
inline void weigh_pairs(float* scores, const int32_t* seen, int64_t n, const float* m, const float* c, float* l) {
  alignas(64) float sums[pair_group][16];
  for (int64_t i = 0; i < n; ++i) store(sums[i], weights(scores + i * tile_size, seen[i], broadcast(m[i])));
  for (int64_t i = 0; i < n; i += 16) store_first(l + i, add(mul(load(l + i), load(c + i)), join_rows<Sum>(sums + i)), n - i);
}

/// o = o · c + weights · values.
inline void add_values(const float* weights, const int32_t* seen, int64_t n, const float* values, int64_t value_row, const ScaledSums& o) {
  for (int64_t column = 0; column < o.stride;) {
    const int64_t some = columns_for((o.stride - column) / 16);
#if CG_ISA_LEVEL >= 2
    if (some == 4) add_values<4>(weights, seen, n, values, value_row, o, column);
    else if (some == 3) add_values<3>(weights, seen, n, values, value_row, o, column);
    else if (some == 2) add_values<2>(weights, seen, n, values, value_row, o, column);
    else
#endif
      add_values<1>(weights, seen, n, values, value_row, o, column);
    column += 16 * some;
  }
}

inline void attend(const AttentionOperands& t, const ForwardScratch& s, int64_t head, const Block& block) {
  const int64_t D = t.D, width = t.width, rep = t.rep, begin = block.begin, end = block.end, pairs = (end - begin) * rep;
  alignas(64) float c[pair_group];
  int32_t seen[pair_group];
  copy_group(t.q, head, rep, begin, end, width, s.queries);
  for (int64_t i = 0; i < pairs; i += 16) {
    store(s.m + i, broadcast(-__builtin_inff()));
    store(s.l + i, zero());
  }
  for (int64_t i = 0; i < pairs * width; i += 16) store(s.o + i, zero());
  for (const Tile& tile : block.tiles) {
    const float* keys = transposed_keys(t.k, head, tile, s.keys);
    const int64_t first = (tile.begin - begin) * rep, last = (tile.end - begin) * rep;
    const float* values = t.v.data + tile.slots[0] * t.v.s0 + head * t.v.s1;
    int64_t value_row = t.v.s0;
    if (!tile.consecutive || width != D || last - first >= pairs_for_copy) {
      copy_tile(t.v, head, tile.slots, tile.count, width, s.values);
      values = s.values;
      value_row = width;
    }
    for (int64_t at = first; at < last; at += pair_group) {
      const int64_t n = last - at < pair_group ? last - at : pair_group;
      visible_slots(t.table, tile, begin, rep, at, at + n, seen);
      score_pairs(s.queries + at * width, width, D, keys, t.factor, seen, n, s.scores, s.m + at, c);
      weigh_pairs(s.scores, seen, n, s.m + at, c, s.l + at);
      add_values(s.scores, seen, n, values, value_row, {{s.o + at * width, width}, c});
    }
  }
  int64_t i = 0;
  for (int64_t row = begin; row < end; ++row)
    for (int64_t h = head * rep; h < (head + 1) * rep; ++h, ++i) {
      const Vec inverse = broadcast(1 / s.l[i]);
      float* to = t.out.data + row * t.out.s0 + h * t.out.s1;
      for (int64_t d = 0; d < D; d += 16) store_first(to + d, mul(load(s.o + i * width + d), inverse), D - d);
      if (t.lse.data) t.lse.data[row * t.lse.s0 + h] = s.m[i] + reference::log_f(s.l[i]);
    }
}

}  // namespace cg::cpu::CG_ISA
