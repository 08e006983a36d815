// Attention over a gather table: decode, prefill and training are this one loop (online softmax: Milakov, Gimelshein 2018; tiles: Dao et al. 2022).
//
//   q, out [R, NH, D]   k, v [S, NK, D]   lse [R, NH]   query head h reads key head h div (NH / NK)
//
// For a row and head, over tiles of 64 absolute positions in order, with m = −∞, l = 0, o = 0 before the first:
//
//   s[j] = (Σ_d q[d] k[j][d]) · (1 / √D)    chain over d ascending        m' = max(m, max s)    c = exp(m − m')    p[j] = exp(s[j] − m')
//   l = l · c + Σ_j p[j]    lanes by j mod 32        o[d] = o[d] · c, then += p[j] v[j][d] for j ascending, the row's own positions only        m = m'
//
// and at the end out = o · (1 / l), lse = m + ln l. Neighbouring rows that see the same slots share the gathered tile, never the arithmetic.
#include "reference/attention.h"

namespace cg::reference {

TableView checked(const View<int32_t>& position, const View<int32_t>& first, const View<int32_t>& table, const View<int32_t>& gather, int64_t rows,
                  int64_t slots) {
  CG_INVARIANT(position.n0 == rows && first.n0 == rows && table.n0 == rows);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t count = int64_t(position.data[i]) - first.data[i] + 1, at = table.data[i];
    if (first.data[i] < 0 || count < 1 || at < 0 || at + count > gather.n0)
      throw Error("E_INDEX", "attention row " + std::to_string(i) + " (positions " + std::to_string(first.data[i]) + " to " + std::to_string(position.data[i]) +
                                 ") leaves its gather list");
  }
  check_index(gather, slots, "slot");
  return {position.data, first.data, table.data, gather.data};
}

void ReferenceBackend::attention(Queue& queue, Tensor q_t, Tensor k_t, Tensor v_t, const AttentionTable& table_t, Tensor out_t, Tensor lse_t, Tensor) {
  enqueue(queue, [&] {
    const auto q = view<float>(q_t), k = view<float>(k_t), v = view<float>(v_t), out = view<float>(out_t);
    if (q.n0 == 0) return;
    const auto lse = lse_t ? view<float>(lse_t) : View<float>{};
    const int64_t rep = q.n1 / k.n1, D = q.n2, width = round_up(D, 16);
    CG_INVARIANT(q.n1 % k.n1 == 0 && k.n2 == D && v.n0 == k.n0 && v.n1 == k.n1 && v.n2 == D && out.n0 == q.n0 && out.n1 == q.n1 && out.n2 == D);
    CG_INVARIANT(!lse.data || (lse.n0 == q.n0 && lse.n2 == q.n1));
    const TableView table =
        checked(view<int32_t>(table_t.position), view<int32_t>(table_t.first), view<int32_t>(table_t.table), view<int32_t>(table_t.gather), q.n0, k.n0);
    const float factor = 1 / __builtin_sqrtf(float(D));
    double pairs = 0;
    for (int64_t i = 0; i < q.n0; ++i) pairs += table.position[i] - table.first[i] + 1;

    constexpr int64_t block = 32;
    const int64_t blocks = (q.n0 + block - 1) / block;
    threads_.run(blocks * k.n1, 1, 4.0 * pairs * double(q.n1 * D), [&](int64_t task_begin, int64_t task_end) {
      const int64_t most = block * rep;
      float* memory = scratch(0, most * (D + width + tile_size + 3) + tile_size * (D + width));
      float* kt = memory;                   // [D][64]
      float* values = kt + D * tile_size;   // [64][width]
      float* o = values + tile_size * width;  // [rows · rep][width], and so on
      float* s = o + most * width;          // [..][64]
      float* queries = s + most * tile_size;  // [..][D]
      float* m = queries + most * D;
      float* l = m + most;
      int32_t* seen = reinterpret_cast<int32_t*>(l + most);  // positions of the tile
      for (int64_t task = task_begin; task < task_end; ++task) {
        const int64_t head = task % k.n1, begin = task / k.n1 * block, end = std::min(begin + block, q.n0), count = (end - begin) * rep;
        for_isa([&](auto isa) CG_INLINE_LAMBDA {
          std::memset(o, 0, size_t(count * width) * 4);
          for (int64_t row = begin, i = 0; row < end; ++row)
            for (int64_t h = 0; h < rep; ++h, ++i) {
              std::memcpy(queries + i * D, q.row(row, head * rep + h), size_t(D) * 4);
              m[i] = -std::numeric_limits<float>::infinity();
              l[i] = 0;
            }
          for_each_tile(table, begin, end, [&](const TileRun& run) CG_INLINE_LAMBDA {
            gather_transposed(k, head, run.slots, run.count, kt);
            gather_dense(v, head, run.slots, run.count, width, values);
            const int64_t first = (run.begin - begin) * rep, last = (run.end - begin) * rep;
            tiles_wide<Chain::begin>(isa, last - first, round_up(run.count, 32), queries + first * D, D, 1, kt, tile_size, D, s + first * tile_size, tile_size);
            for (int64_t row = run.begin, i = first; row < run.end; ++row) {
              const int64_t visible = table.tile_end(row, run.tile) - run.from, filled = round_up(visible, lanes);
              for (int64_t h = 0; h < rep; ++h, ++i) {
                seen[i] = int32_t(visible);
                float* p = s + i * tile_size;
                for (int64_t j = visible; j < filled; ++j) p[j] = -std::numeric_limits<float>::infinity();  // becomes p = 0, which changes no sum
                for_lanes(filled, [&](int64_t j) CG_INLINE_LAMBDA { p[j] *= factor; });
                const float top = max_of(p, filled), now = m[i] > top ? m[i] : top, c = exp_f(m[i] - now);
                for_lanes(filled, [&](int64_t j) CG_INLINE_LAMBDA { p[j] = exp_f(p[j] - now); });
                l[i] = l[i] * c + sum_of(filled, [&](int64_t j) CG_INLINE_LAMBDA { return p[j]; });
                m[i] = now;
                for (int64_t d = 0; d < width; ++d) o[i * width + d] *= c;
              }
            }
            // Rows of one register tile go together as far as all of them see, then each alone.
            for (int64_t i = first; i < last; i += isa.tile_rows) {
              const int64_t stop = std::min<int64_t>(i + isa.tile_rows, last), shared = *std::min_element(seen + i, seen + stop);
              tiles_wide<Chain::go_on>(isa, stop - i, width, s + i * tile_size, tile_size, 1, values, width, shared, o + i * width, width);
              for (int64_t r = i; r < stop; ++r)
                if (seen[r] > shared)
                  tiles_wide<Chain::go_on>(isa, 1, width, s + r * tile_size + shared, tile_size, 1, values + shared * width, width, seen[r] - shared,
                                           o + r * width, width);
            }
          });
          for (int64_t row = begin, i = 0; row < end; ++row)
            for (int64_t h = 0; h < rep; ++h, ++i) {
              const float inverse = 1 / l[i];
              float* to = out.row(row, head * rep + h);
              for (int64_t d = 0; d < D; ++d) to[d] = o[i * width + d] * inverse;
              if (lse.data) lse.row(row)[head * rep + h] = m[i] + log_f(l[i]);
            }
        });
      }
    });
  });
}

}  // namespace cg::reference
