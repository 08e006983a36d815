// What the forward and backward passes of attention share outside their kernels: which tiles a block of query rows walks, worked out once for all heads.
#pragma once

#include <vector>

#include "reference/attention.h"

namespace cg::cpu {

using reference::AttentionGradient;
using reference::AttentionOperands;
using reference::Keys;
using reference::TableView;
using reference::View;
using reference::round_up;
using reference::tile_size;

/// Pairs of a row and a head of one group that go through the passes over the scores together: [group][64] floats stay in the first-level cache. A multiple of
/// every register tile's rows and of 16.
constexpr int64_t pair_group = 48;

/// Pairs that pay for a dense copy of a tile's values; fewer read them where they lie.
constexpr int64_t pairs_for_copy = 32;

struct Tile : reference::TileRun {
  bool consecutive;  // slots[j] = slots[0] + j
};

/// Consecutive query rows that go together, and the tiles they walk, in order.
struct Block {
  int64_t begin, end;
  std::vector<Tile> tiles;
};

/// The query rows cut into blocks of `rows` to 1.5 · `rows`, where positions cross a tile if possible: then one tile of a block is seen in part, not two.
class TilePlan {
 public:
  TilePlan(reference::Threads&, const TableView&, int64_t R, int64_t rows, double pairs);
  const std::vector<Block>& blocks() const { return blocks_; }
  /// Rows of the longest block.
  int64_t most() const { return most_; }

 private:
  std::vector<Block> blocks_;
  int64_t most_ = 0;
};

/// Rows of a block: 64, fewer where the threads would not all have work. Changes no result.
int64_t block_rows(int64_t R, int64_t heads, int threads);

/// Cuts one block of scratch into arrays, each on a cache line of its own and with 64 floats behind it that may be read.
class Cut {
 public:
  explicit Cut(float* at = nullptr) : at_(at) {}
  float* take(int64_t floats) {
    float* array = at_ + used_;
    used_ += round_up(floats, 16) + 64;
    return array;
  }
  int64_t used() const { return used_; }

 private:
  float* at_;
  int64_t used_ = 0;
};

}  // namespace cg::cpu
