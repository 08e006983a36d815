// Attention over a gather table: decode, prefill and training are this one loop (online softmax: Milakov, Gimelshein 2018; tiles: Dao et al. 2022).
//
//   q, out [R, NH, D]   k [S, NK, D] or [S / 64, NK, D, 64]   v [S, NK, D]   lse [R, NH]   query head h reads key head h div (NH / NK)
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

double visible_pairs(const TableView& table, int64_t rows) {
  double pairs = 0;
  for (int64_t i = 0; i < rows; ++i) pairs += table.position[i] - table.first[i] + 1;
  return pairs;
}

void ReferenceBackend::attention(Queue& queue, Tensor q_t, Tensor k_t, Tensor v_t, const AttentionTable& table_t, Tensor out_t, Tensor lse_t, Tensor) {
  enqueue(queue, [&] {
    AttentionOperands t;
    t.q = view<float>(q_t), t.v = view<float>(v_t), t.out = view<float>(out_t), t.lse = lse_t ? view<float>(lse_t) : View<float>{};
    const int64_t R = t.q.n0, heads = t.v.n1;
    if (R == 0) return;
    t.D = t.q.n2, t.width = round_up(t.D, 16), t.rep = t.q.n1 / heads, t.factor = 1 / __builtin_sqrtf(float(t.D));
    t.k = {view<float>(k_t), k_t.rank == 4, t.D};
    CG_INVARIANT(t.q.n1 % heads == 0 && t.v.n2 == t.D && t.out.n0 == R && t.out.n1 == t.q.n1 && t.out.n2 == t.D);
    CG_INVARIANT(t.k.slots() == t.v.n0 && t.k.x.n1 == heads && t.k.x.n2 == (t.k.paged ? t.D * page_size : t.D));
    CG_INVARIANT(!t.lse.data || (t.lse.n0 == R && t.lse.n2 == t.q.n1));
    t.table = checked(view<int32_t>(table_t.position), view<int32_t>(table_t.first), view<int32_t>(table_t.table), view<int32_t>(table_t.gather), R, t.v.n0);
    t.pairs = visible_pairs(t.table, R);
    attend(t);
  });
}

void ReferenceBackend::attend(const AttentionOperands& t) {
  const View<float>&q = t.q, &v = t.v, &out = t.out, &lse = t.lse;
  const Keys& k = t.k;
  const TableView& table = t.table;
  const int64_t groups = v.n1, rep = t.rep, D = t.D, width = t.width;
  const float factor = t.factor;
  constexpr int64_t block = 32;
  const int64_t blocks = (q.n0 + block - 1) / block;
  threads_.run(blocks * groups, 1, 4.0 * t.pairs * double(q.n1 * D), [&](int64_t task_begin, int64_t task_end) {
    const int64_t most = block * rep;
    float* memory = scratch(0, most * (D + width + tile_size + 5) + tile_size * (D + width));
    float* kt = memory;                     // [D][64]
    float* padded = kt + D * tile_size;     // [64][width], for values whose D is no multiple of 16
    float* o = padded + tile_size * width;  // [rows · rep][width], and so on
    float* s = o + most * width;          // [..][64]
    float* queries = s + most * tile_size;  // [..][D]
    float* m = queries + most * D;
    float* l = m + most;
    float* top = l + most;  // largest score of the tile
    float* c = top + most;
    int32_t* seen = reinterpret_cast<int32_t*>(c + most);  // positions of the tile
    for (int64_t task = task_begin; task < task_end; ++task) {
      const int64_t head = task % groups, begin = task / groups * block, end = std::min(begin + block, q.n0), count = (end - begin) * rep;
      for_isa([&](auto isa) CG_INLINE_LAMBDA {
        std::memset(o, 0, size_t(count * width) * 4);
        for (int64_t row = begin, i = 0; row < end; ++row)
          for (int64_t h = 0; h < rep; ++h, ++i) {
            std::memcpy(queries + i * D, q.row(row, head * rep + h), size_t(D) * 4);
            m[i] = -std::numeric_limits<float>::infinity();
            l[i] = 0;
          }
        for_each_tile(table, begin, end, [&](const TileRun& run) CG_INLINE_LAMBDA {
          const float* keys = k.transposed(head, run.slots, run.count, kt);
          const int64_t first = (run.begin - begin) * rep, last = (run.end - begin) * rep;
          tiles_wide<Chain::begin>(isa, last - first, round_up(run.count, 32), queries + first * D, D, 1, Dense{keys, tile_size}, D, s + first * tile_size,
                                   tile_size);
          for (int64_t row = run.begin, i = first; row < run.end; ++row) {
            const int64_t visible = table.tile_end(row, run.tile) - run.from, filled = round_up(visible, lanes);
            for (int64_t h = 0; h < rep; ++h, ++i) {
              seen[i] = int32_t(visible);
              float* p = s + i * tile_size;
              for (int64_t j = visible; j < filled; ++j) p[j] = -std::numeric_limits<float>::infinity();  // becomes p = 0, which changes no sum
              for_lanes(filled, [&](int64_t j) CG_INLINE_LAMBDA { p[j] *= factor; });
              top[i] = max_of(p, filled);
            }
          }
          for (int64_t i = first; i < last; ++i) {
            const float now = m[i] > top[i] ? m[i] : top[i];
            c[i] = exp_f(m[i] - now);
            m[i] = now;
          }
          for (int64_t i = first; i < last; ++i) {
            float* p = s + i * tile_size;
            for_lanes(round_up(seen[i], lanes), [&](int64_t j) CG_INLINE_LAMBDA { p[j] = exp_f(p[j] - m[i]); });
          }
          for (int64_t i = first; i < last; ++i) {
            const float* p = s + i * tile_size;
            l[i] = l[i] * c[i] + sum_of(round_up(seen[i], lanes), [&](int64_t j) CG_INLINE_LAMBDA { return p[j]; });
            for (int64_t d = 0; d < width; ++d) o[i * width + d] *= c[i];
          }
          // Rows of one register tile go together as far as all of them see, then each alone.
          const auto add_values = [&](auto values) CG_INLINE_LAMBDA {
            for (int64_t i = first; i < last; i += isa.tile_rows) {
              const int64_t stop = std::min<int64_t>(i + isa.tile_rows, last), shared = *std::min_element(seen + i, seen + stop);
              tiles_wide<Chain::go_on>(isa, stop - i, width, s + i * tile_size, tile_size, 1, values, shared, o + i * width, width);
              for (int64_t r = i; r < stop; ++r)
                if (seen[r] > shared)
                  tiles_wide<Chain::go_on>(isa, 1, width, s + r * tile_size + shared, tile_size, 1, values.rows_from(shared), seen[r] - shared, o + r * width,
                                           width);
            }
          };
          if (width == D) {
            add_values(Listed{v.row(0, head), v.s0, run.slots});
          } else {
            gather_dense(v, head, run.slots, run.count, width, padded);
            add_values(Dense{padded, width});
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
}

}  // namespace cg::reference
