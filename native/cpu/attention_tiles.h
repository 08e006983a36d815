// The keys and values of one tile of attention, laid out for register tiles. Included by kernel files (no guard: once per instruction set), after vec_math.h.
namespace cg::cpu::CG_ISA {

/// to [x.n2][64]: column j is row slots[j] of head `head`; columns from count on are anything finite, up to the next multiple of 16.
CG_INLINE void transpose_tile(const View<float>& x, int64_t head, const int32_t* slots, int64_t count, float* to) {
  for (int64_t j = 0; j < count; j += 16) {
    const float* from[16];
    for (int64_t i = 0; i < 16; ++i) from[i] = x.data + slots[j + i < count ? j + i : count - 1] * x.s0 + head * x.s1;
    for (int64_t d = 0; d < x.n2; d += 16) {
      transpose(from, x.n2 - d < 16 ? x.n2 - d : 16, to + d * tile_size + j, tile_size);
      for (int64_t i = 0; i < 16; ++i) from[i] += 16;
    }
  }
}

/// The keys of a tile as [D][64]: where a page holds them so, else in `to`. Columns from count on are anything.
CG_INLINE const float* transposed_keys(const Keys& k, int64_t head, const Tile& tile, float* to) {
  if (!k.paged) {
    transpose_tile(k.x, head, tile.slots, tile.count, to);
    return to;
  }
  const float* first = k.x.data + tile.slots[0] / page_size * k.x.s0 + head * k.x.s1;
  if (tile.consecutive && tile.slots[0] % page_size == 0) return first;
  for (int64_t j = 0; j < tile.count; ++j) {
    const float* from = k.x.data + tile.slots[j] / page_size * k.x.s0 + head * k.x.s1 + tile.slots[j] % page_size;
    for (int64_t d = 0; d < k.D; ++d) to[d * tile_size + j] = from[d * page_size];
  }
  return to;
}

/// to [count][width]: row j is row slots[j] of head `head`, columns beyond x.n2 zero.
CG_INLINE void copy_tile(const View<float>& x, int64_t head, const int32_t* slots, int64_t count, int64_t width, float* to) {
  for (int64_t j = 0; j < count; ++j, to += width) {
    const float* from = x.data + slots[j] * x.s0 + head * x.s1;
    for (int64_t d = 0; d < x.n2; d += 16) store(to + d, load_first(from + d, x.n2 - d));
  }
}

/// to [(end − begin) · rep][stride]: the rows of x for the heads of group `head`, columns beyond x.n2 zero.
CG_INLINE void copy_group(const View<float>& x, int64_t head, int64_t rep, int64_t begin, int64_t end, int64_t stride, float* to) {
  for (int64_t row = begin; row < end; ++row)
    for (int64_t h = head * rep; h < (head + 1) * rep; ++h, to += stride) {
      const float* from = x.data + row * x.s0 + h * x.s1;
      for (int64_t d = 0; d < x.n2; d += 16) store(to + d, load_first(from + d, x.n2 - d));
    }
}

/// How many slots of a tile each pair of a group sees; returns the most. Pairs i … end − 1 count from the block's first row on.
CG_INLINE int64_t visible_slots(const TableView& table, const Tile& tile, int64_t first_row, int64_t rep, int64_t i, int64_t end, int32_t* seen) {
  int64_t most = 0;
  for (int64_t row = first_row + i / rep, h = i % rep; i < end; ++row, h = 0) {
    const int64_t to = (tile.tile + 1) * tile_size, last = table.position[row] + 1, visible = (last < to ? last : to) - tile.from;
    if (visible > most) most = visible;
    for (; h < rep && i < end; ++h, ++i) *seen++ = int32_t(visible);
  }
  return most;
}

}  // namespace cg::cpu::CG_ISA
