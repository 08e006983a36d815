// Log-probs and their gradient without keeping logits.  h [M, H], head [V, H], logits z = h · headᵀ; ids from real_vocab on count as −∞.
//
//   logp[e]    = z[t] / T − lse(z / T), t = target[e], T = temperature[e]       entropy[e] = lse − Σ_j p[j] z[j] / T, p = exp(z / T − lse)
//   dh[row]    = Σ_n dz[n] head[n] (one chain, n ascending), dz[j] = Σ_e coefficient[e] / T_e · ([j = t_e] − p_e[j]) over the row's entries in order
//   dhead[n]   = Σ_row dz[row][n] h[row] (one chain, rows ascending, continued from chunk to chunk)
#include <cstring>

#include "reference/head.h"
#include "reference/tile.h"

namespace cg::reference {

namespace {

struct Entries {
  View<int32_t> row, target;
  View<float> temperature;
};

/// Entries are by ascending row; calls body(entry) is left to the caller: this finds the first entry whose row is at least `row`.
int64_t first_entry(const Entries& entries, int64_t row) {
  return std::lower_bound(entries.row.data, entries.row.data + entries.row.n0, int32_t(row)) - entries.row.data;
}

void check(const Entries& entries, int64_t rows, int64_t real_vocab) {
  CG_INVARIANT(entries.row.n0 == entries.target.n0 && entries.row.n0 == entries.temperature.n0);
  check_index(entries.row, rows, "head row");
  check_index(entries.target, real_vocab, "target id");
  for (int64_t e = 0; e < entries.row.n0; ++e) {
    if (e > 0 && entries.row.data[e] < entries.row.data[e - 1]) throw Error("E_INDEX", "loss entries must ascend by row");
    if (!(entries.temperature.data[e] > 0)) throw Error("E_TEMPERATURE", "the temperature of a loss entry must be above 0");
  }
}

}  // namespace

void ReferenceBackend::head_logp(Queue& queue, Tensor h_t, Weight head_id, int64_t real_vocab, const LossEntries& entries_t, Tensor logp_t, Tensor entropy_t,
                                 Tensor workspace_t) {
  enqueue(queue, [&] {
    const auto h = view<float>(h_t);
    const Packed& head = packed(head_id);
    const Entries entries{view<int32_t>(entries_t.row), view<int32_t>(entries_t.target), view<float>(entries_t.temperature)};
    const int64_t E = entries.row.n0;
    if (E == 0) return;
    CG_INVARIANT(h.n2 == head.k && real_vocab <= head.n && logp_t.size() == E && (!entropy_t || entropy_t.size() == E));
    check(entries, h.n0, real_vocab);
    float* logp = view<float>(logp_t).data;
    float* entropy = entropy_t ? view<float>(entropy_t).data : nullptr;
    float* logits = view<float>(workspace_t).data;
    const int64_t chunk = std::min(h.n0, workspace_t.size() / real_vocab);
    CG_INVARIANT(chunk >= 1);
    for (int64_t begin = 0; begin < h.n0; begin += chunk) {
      const int64_t end = std::min(begin + chunk, h.n0), e0 = first_entry(entries, begin), e1 = first_entry(entries, end);
      if (e0 == e1) continue;
      product(rows_of(h, begin, end), head, nullptr, false, dense(logits, end - begin, real_vocab));
      threads_.run(e1 - e0, 1, 40.0 * double((e1 - e0) * real_vocab), [&](int64_t first, int64_t last) {
        float* weight = scratch(0, real_vocab);
        for_isa([&](auto) CG_INLINE_LAMBDA {
          for (int64_t e = e0 + first; e < e0 + last; ++e) {
            const float *z = logits + (entries.row.data[e] - begin) * real_vocab, T = entries.temperature.data[e];
            const LogSum sum = log_sum_exp(z, real_vocab, T, weight);
            logp[e] = z[entries.target.data[e]] / T - sum.lse;
            if (entropy) entropy[e] = sum.lse - sum_of(real_vocab, [&](int64_t j) CG_INLINE_LAMBDA { return weight[j] * (z[j] / T); }) / sum.sum;
          }
        });
      });
    }
  });
}

template <class Body>
void ReferenceBackend::for_each_logit_gradient(const View<float>& h, const Packed& head, int64_t real_vocab, const LossEntries& entries_t, Tensor coefficient_t,
                                               Tensor workspace_t, const Body& body) {
  const Entries entries{view<int32_t>(entries_t.row), view<int32_t>(entries_t.target), view<float>(entries_t.temperature)};
  CG_INVARIANT(h.n2 == head.k && real_vocab <= head.n && coefficient_t.size() == entries.row.n0);
  check(entries, h.n0, real_vocab);
  const float* coefficient = entries.row.n0 > 0 ? view<float>(coefficient_t).data : nullptr;
  const int64_t chunk = std::min(h.n0, workspace_t.size() / (2 * real_vocab));
  CG_INVARIANT(chunk >= 1);
  float *logits = view<float>(workspace_t).data, *dz = logits + chunk * real_vocab;
  for (int64_t begin = 0; begin < h.n0; begin += chunk) {
    const int64_t end = std::min(begin + chunk, h.n0);
    product(rows_of(h, begin, end), head, nullptr, false, dense(logits, end - begin, real_vocab));
    threads_.run(end - begin, 1, 40.0 * double((end - begin) * real_vocab), [&](int64_t first, int64_t last) {
      float* weight = scratch(0, real_vocab);
      for_isa([&](auto) CG_INLINE_LAMBDA {
        for (int64_t row = first; row < last; ++row) {
          float* d = dz + row * real_vocab;
          for (int64_t j = 0; j < real_vocab; ++j) d[j] = 0;
          const int64_t stop = first_entry(entries, begin + row + 1);
          for (int64_t e = first_entry(entries, begin + row); e < stop; ++e) {
            const float T = entries.temperature.data[e], c = coefficient[e] / T;
            const LogSum sum = log_sum_exp(logits + row * real_vocab, real_vocab, T, weight);
            const float share = c / sum.sum;
            for (int64_t j = 0; j < real_vocab; ++j) d[j] -= share * weight[j];
            d[entries.target.data[e]] += c;
          }
        }
      });
    });
    body(begin, end, dz);
  }
}

void ReferenceBackend::head_backward(Queue& queue, Tensor h_t, Weight head_id, int64_t real_vocab, const LossEntries& entries, Tensor coefficient, Tensor dh_t,
                                     Tensor workspace) {
  enqueue(queue, [&] {
    const auto h = view<float>(h_t), dh = view<float>(dh_t);
    if (h.n0 == 0) return;
    CG_INVARIANT(dh.n0 == h.n0 && dh.n2 == h.n2);
    const Packed& head = packed(head_id);
    for_each_logit_gradient(h, head, real_vocab, entries, coefficient, workspace, [&](int64_t begin, int64_t end, float* dz) {
      product_backward(dense(dz, end - begin, real_vocab), head, false, rows_of(dh, begin, end));
    });
  });
}

void ReferenceBackend::head_weight_gradient(Queue& queue, Tensor h_t, Weight head_id, int64_t real_vocab, const LossEntries& entries, Tensor coefficient,
                                            Tensor out_t, Tensor workspace) {
  enqueue(queue, [&] {
    const auto h = view<float>(h_t), out = view<float>(out_t);
    const Packed& head = packed(head_id);
    CG_INVARIANT(out.n0 == head.n && out.n2 == head.k);
    for (int64_t id = 0; id < out.n0; ++id) std::fill(out.row(id), out.row(id) + out.n2, 0.0f);
    if (h.n0 == 0) return;
    constexpr int64_t tall = 64, wide = 32;
    const int64_t down = parts(real_vocab, tall), across = parts(out.n2, wide);
    for_each_logit_gradient(h, head, real_vocab, entries, coefficient, workspace, [&](int64_t begin, int64_t end, float* dz) {
      const int64_t depth = end - begin;
      threads_.run(down * across, 1, 2.0 * double(depth * real_vocab * out.n2), [&](int64_t first, int64_t last) {
        float *sums = scratch(0, tall * wide), *columns_of_h = scratch(1, depth * wide);
        for_isa([&](auto isa) CG_INLINE_LAMBDA {
          for (int64_t task = first; task < last; ++task) {
            const int64_t id = task % down * tall, ids = std::min(tall, real_vocab - id), j = task / down * wide, columns = std::min(wide, out.n2 - j);
            if (columns < wide) std::memset(columns_of_h, 0, size_t(depth * wide) * 4);
            for (int64_t i = 0; i < depth; ++i) std::memcpy(columns_of_h + i * wide, h.row(begin + i) + j, size_t(columns) * 4);
            for (int64_t i = 0; i < ids; ++i)
              for (int64_t c = 0; c < wide; ++c) sums[i * wide + c] = c < columns ? out.row(id + i)[j + c] : 0;
            tiles<Chain::go_on, 32>(isa, ids, dz + id, 1, real_vocab, Dense{columns_of_h, wide}, depth, sums, wide);
            for (int64_t i = 0; i < ids; ++i) std::memcpy(out.row(id + i) + j, sums + i * wide, size_t(columns) * 4);
          }
        });
      });
    });
  });
}

}  // namespace cg::reference
