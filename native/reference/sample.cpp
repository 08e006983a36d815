// One token for each row.  h [*, H]; the rules and the order of cuts are core/sampling_rules.h, the random number is core/rng.h.
//
// The log-prob is log_sum_exp's, as in head_logp: of the temperature-scaled distribution before penalty and cuts (greedy: at temperature 1).
#include <cmath>
#include <cstring>

#include "core/rng.h"
#include "core/sampling_rules.h"
#include "reference/head.h"

namespace cg::reference {

namespace {

SampleParams params_at(const float* p) { return {p[0], p[1], p[2], p[3], p[4], p[5]}; }

/// scores −> exp(score − largest), 0 where cut.
void weigh(const float* scores, int64_t vocab, float* weight) {
  for_isa([&](auto) CG_INLINE_LAMBDA {
    const float top = max_of(scores, vocab);
    for (int64_t j = 0; j < vocab; ++j) weight[j] = exp_f(scores[j] - top);
  });
}

/// scores are the row's logits and are overwritten.
int32_t choose(float* scores, float* weight, int32_t* order, int64_t vocab, const SampleParams& p, const int32_t* seen, int64_t seen_count, SampleKey key) {
  apply_penalty(scores, seen, seen_count, p.repetition_penalty);
  if (p.temperature == 0) return most_likely(scores, vocab);
  apply_temperature(scores, vocab, p.temperature);
  cut_top_k(scores, vocab, p.top_k, order);
  weigh(scores, vocab, weight);
  cut_top_p(scores, weight, vocab, p.top_p, order);
  cut_min_p(scores, weight, vocab, p.min_p);
  return draw(weight, vocab, uniform(key));
}

}  // namespace

void ReferenceBackend::sample(Queue& queue, Tensor h_t, Weight head_id, int64_t real_vocab, const SampleRows& rows_t, Tensor ids_t, Tensor logp_t,
                              Tensor workspace_t) {
  enqueue(queue, [&] {
    const auto h = view<float>(h_t), params = view<float>(rows_t.params), logp = view<float>(logp_t);
    const auto row = view<int32_t>(rows_t.row), offset = view<int32_t>(rows_t.seen_offset), ids = view<int32_t>(ids_t);
    const auto keys = view<uint64_t>(rows_t.keys);
    const Packed& head = packed(head_id);
    const int64_t M = row.n0;
    if (M == 0) return;
    const View<int32_t> seen = rows_t.seen ? view<int32_t>(rows_t.seen) : View<int32_t>{};
    CG_INVARIANT(h.n2 == head.k && real_vocab <= head.n && params.n0 == M && params.n2 == SampleParams::fields && keys.n0 == M && keys.n2 == 3 &&
                 offset.n0 == M + 1 && ids.n0 == M && logp.n0 == M);
    check_index(row, h.n0, "head row");
    check_index(seen, real_vocab, "earlier id");
    check_index(offset, seen.n0 + 1, "offset of earlier ids");
    float* logits = view<float>(workspace_t).data;
    const int64_t chunk = std::min(h.n0, workspace_t.size() / real_vocab);
    CG_INVARIANT(chunk >= 1);
    std::atomic<bool> finite{true};
    for (int64_t begin = 0; begin < h.n0; begin += chunk) {
      const int64_t end = std::min(begin + chunk, h.n0);
      product(rows_of(h, begin, end), head, nullptr, false, dense(logits, end - begin, real_vocab));
      threads_.run(M, 1, 100.0 * double(M * real_vocab), [&](int64_t first, int64_t last) {
        float *scores = scratch(0, real_vocab), *weight = scratch(1, real_vocab);
        int32_t* order = reinterpret_cast<int32_t*>(scratch(2, real_vocab));
        for (int64_t i = first; i < last; ++i) {
          if (row.data[i] < begin || row.data[i] >= end) continue;
          const SampleParams p = params_at(params.row(i));
          const float *z = logits + (row.data[i] - begin) * real_vocab, T = p.temperature == 0 ? 1 : p.temperature;
          LogSum sum;
          for_isa([&](auto) CG_INLINE_LAMBDA { sum = log_sum_exp(z, real_vocab, T, weight); });
          if (!std::isfinite(sum.lse)) {
            finite = false;
            ids.data[i] = 0;
            continue;
          }
          std::memcpy(scores, z, size_t(real_vocab) * 4);
          const SampleKey key{keys.row(i)[0], keys.row(i)[1], keys.row(i)[2]};
          const int32_t id = choose(scores, weight, order, real_vocab, p, seen.data + offset.data[i], offset.data[i + 1] - offset.data[i], key);
          ids.data[i] = id;
          logp.data[i] = z[id] / T - sum.lse;
        }
      });
    }
    if (!finite) throw Error("E_NAN", "a row's logits are not finite; the model or its adapter has diverged");
  });
}

}  // namespace cg::reference
