// What the forward and backward passes of attention share: which tiles a block of query rows walks, and the gathered keys and values of one tile.
#pragma once

#include <algorithm>
#include <cstring>

#include "reference/reference_backend.h"
#include "reference/tile.h"
#include "reference/vector_math.h"

namespace cg::reference {

/// Positions of a tile.
constexpr int64_t tile_size = page_size;

struct TableView {
  const int32_t *position, *first, *table, *gather;
  /// Slots of row i from absolute position `at` on.
  const int32_t* slots(int64_t i, int64_t at) const { return gather + table[i] + (at - first[i]); }
  int64_t tile_begin(int64_t i, int64_t tile) const { return std::max<int64_t>(first[i], tile * tile_size); }
  int64_t tile_end(int64_t i, int64_t tile) const { return std::min<int64_t>(position[i] + 1, (tile + 1) * tile_size); }
};

/// Rows begin … end − 1 walk one tile over the same slots (some see fewer of them): `slots` are those from absolute position `from` on.
struct TileRun {
  int64_t begin, end;
  int64_t tile, from, count;  // the longest list
  const int32_t* slots;
};

/// Calls body(run) for every tile that rows [begin, end) see, tiles ascending, neighbouring rows with equal slots together.
template <class Body>
CG_INLINE void for_each_tile(const TableView& table, int64_t begin, int64_t end, const Body& body) {
  int64_t low = table.first[begin] / tile_size, high = 0;
  for (int64_t i = begin; i < end; ++i) {
    low = std::min<int64_t>(low, table.first[i] / tile_size);
    high = std::max<int64_t>(high, table.position[i] / tile_size);
  }
  for (int64_t tile = low; tile <= high; ++tile) {
    TileRun run{begin, begin, tile, 0, 0, nullptr};
    for (int64_t i = begin; i <= end; ++i) {  // one call of body, or it would be compiled twice
      const bool over = i == end;
      const int64_t from = over ? 0 : table.tile_begin(i, tile), count = over ? 0 : table.tile_end(i, tile) - from;
      if (!over && count <= 0) continue;
      const int32_t* slots = over ? nullptr : table.slots(i, from);
      const int64_t common = std::min(count, run.count);
      const bool joins = !over && run.count > 0 && run.end == i && run.from == from &&
                         (slots == run.slots || std::memcmp(slots, run.slots, size_t(common) * 4) == 0);
      if (!joins) {
        if (run.count > 0) body(run);
        run = {i, i, tile, from, 0, nullptr};
      }
      run.end = i + 1;
      if (count > run.count) {
        run.count = count;
        run.slots = slots;
      }
    }
  }
}

/// to [D][64]: column j is row slots[j] of head `head`; columns from count on are zero up to the next multiple of 32.
CG_INLINE void gather_transposed(const View<float>& x, int64_t head, const int32_t* slots, int64_t count, float* to) {
  const int64_t filled = round_up(count, 32);
  for (int64_t j = 0; j < count; ++j) {
    const float* from = x.row(slots[j], head);
    for (int64_t d = 0; d < x.n2; ++d) to[d * tile_size + j] = from[d];
  }
  for (int64_t d = 0; d < x.n2; ++d)
    for (int64_t j = count; j < filled; ++j) to[d * tile_size + j] = 0;
}

/// to [count][width]: row j is row slots[j] of head `head`, columns beyond D zero.
CG_INLINE void gather_dense(const View<float>& x, int64_t head, const int32_t* slots, int64_t count, int64_t width, float* to) {
  for (int64_t j = 0; j < count; ++j) {
    const float* from = x.row(slots[j], head);
    for (int64_t d = 0; d < x.n2; ++d) to[j * width + d] = from[d];
    for (int64_t d = x.n2; d < width; ++d) to[j * width + d] = 0;
  }
}

/// The keys of a store [S, NK, D], or of one by pages [S / 64, NK, D, 64].
struct Keys {
  View<float> x;  // pages: [S / 64, NK, D · 64]
  bool paged;
  int64_t D;

  int64_t slots() const { return paged ? x.n0 * page_size : x.n0; }

  /// [D][64], column j the key of slots[j]: where a page holds them so, else copied to `to`. Columns from count on are anything.
  CG_INLINE const float* transposed(int64_t head, const int32_t* slots, int64_t count, float* to) const {
    if (!paged) {
      gather_transposed(x, head, slots, count, to);
      return to;
    }
    const float* column[page_size];
    bool in_place = slots[0] % page_size == 0;
    for (int64_t j = 0; j < count; ++j) {
      column[j] = x.row(slots[j] / page_size, head) + slots[j] % page_size;
      in_place &= slots[j] == slots[0] + j;
    }
    if (in_place) return column[0];
    for (int64_t d = 0; d < D; ++d)
      for (int64_t j = 0; j < count; ++j) to[d * page_size + j] = column[j][d * page_size];
    return to;
  }
};

/// Pairs of a query row and a slot it sees.
double visible_pairs(const TableView&, int64_t rows);

/// What `attention` computes with, checked.
struct AttentionOperands {
  View<float> q, v, out, lse;  // lse may be none
  Keys k;
  TableView table;
  int64_t rep, D, width;  // query heads to a key head; width: D rounded up to 16
  float factor;           // 1 / √D
  double pairs;
};

/// What `attention_backward` computes with, checked.
struct AttentionGradient {
  View<float> dout, q, k, v, out, lse, dq, dk, dv;
  TableView table;
  View<int32_t> subtree_end;
  int64_t rep, D, width;
  float factor;
  double pairs;
  float* delta;  // [R, NH] room for δ
};

/// Checks a table against R rows and S slots, and that every list it names lies within `gather`.
TableView checked(const View<int32_t>& position, const View<int32_t>& first, const View<int32_t>& table, const View<int32_t>& gather, int64_t rows,
                  int64_t slots);

}  // namespace cg::reference
