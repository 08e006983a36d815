// Sampling: what is drawn, its log-prob, and that neither depends on the batch.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/rng.h"
#include "test/device.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

namespace {

struct Row {
  int32_t state;
  SampleParams params;
  SampleKey key;
  std::vector<int32_t> seen;
};

struct Drawn {
  std::vector<int32_t> ids;
  std::vector<float> logp;
};

Drawn run(Device& d, const std::vector<float>& h, int64_t H, const std::vector<float>& w, int64_t V, int64_t real, const std::vector<Row>& rows) {
  const auto M = int64_t(rows.size()), states = int64_t(h.size()) / H;
  std::vector<int32_t> row, offset{0}, seen;
  std::vector<float> params;
  std::vector<uint64_t> keys;
  for (const Row& r : rows) {
    row.push_back(r.state);
    params.insert(params.end(), {r.params.temperature, r.params.top_k, r.params.top_p, r.params.min_p, r.params.repetition_penalty, 0});
    keys.insert(keys.end(), {r.key.seed, r.key.rollout, r.key.position});
    seen.insert(seen.end(), r.seen.begin(), r.seen.end());
    offset.push_back(int32_t(seen.size()));
  }
  const SampleRows lists{d.put(row), d.put(params, {M, SampleParams::fields}), d.put(keys, {M, 3}), d.put(offset), d.put(seen)};
  const Tensor ids = d.make({M}, DType::i32), logp = d.make({M});
  d.backend.sample(d.queue(), d.put(h, {states, H}), d.weight(w, V, H), real, lists, ids, logp, d.workspace(Op::sample, states, V, H));
  return {d.get<int32_t>(ids), d.get<float>(logp)};
}

std::vector<float> both(const Drawn& drawn) {
  std::vector<float> all(drawn.ids.begin(), drawn.ids.end());
  all.insert(all.end(), drawn.logp.begin(), drawn.logp.end());
  return all;
}

/// The definition in float64 with a full stable sort; `margin` is how far the draw was from another id, as a probability.
int32_t twin(const std::vector<float>& h, int64_t H, const std::vector<float>& w, int64_t real, const Row& r, double* logp, double* margin) {
  Doubles z(static_cast<size_t>(real)), x;
  for (int64_t j = 0; j < real; ++j)
    for (int64_t i = 0; i < H; ++i) z[size_t(j)] += double(h[size_t(r.state * H + i)]) * w[size_t(j * H + i)];
  x = z;
  for (const int32_t id : r.seen) x[size_t(id)] *= x[size_t(id)] < 0 ? double(r.params.repetition_penalty) : 1 / double(r.params.repetition_penalty);
  const double T = r.params.temperature == 0 ? 1 : r.params.temperature, top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double v : z) sum += std::exp((v - top) / T);
  const auto finish = [&](int32_t id) {
    *logp = (z[size_t(id)] - top) / T - std::log(sum);
    return id;
  };
  std::vector<int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return x[size_t(a)] > x[size_t(b)]; });
  *margin = 1;
  if (r.params.temperature == 0) return finish(order[0]);
  const double largest = x[size_t(order[0])];
  Doubles q(x.size());
  const auto k = r.params.top_k > 0 ? std::min(size_t(r.params.top_k), x.size()) : x.size();
  double total = 0;
  for (const int32_t id : order)
    if (x[size_t(id)] >= x[size_t(order[k - 1])]) total += q[size_t(id)] = std::exp((x[size_t(id)] - largest) / T);
  double before = 0, kept = 0;
  for (const int32_t id : order) {
    const double mass = q[size_t(id)] / total;
    if (before >= double(r.params.top_p) && before > 0) q[size_t(id)] = 0;
    if (q[size_t(id)] < double(r.params.min_p)) q[size_t(id)] = 0;
    before += mass;
    kept += q[size_t(id)];
  }
  double at = 0;
  const double target = uniform(r.key) * kept;
  int32_t last = 0;
  for (int64_t j = 0; j < real; ++j) {
    if (q[size_t(j)] == 0) continue;
    last = int32_t(j);
    *margin = std::min(*margin, std::abs(at - target) / kept);
    at += q[size_t(j)];
    if (at > target) break;
  }
  *margin = std::min(*margin, std::abs(at - target) / kept);
  return finish(last);
}

const SampleParams settings[] = {{},
                                 {.temperature = 0},
                                 {.temperature = 0, .repetition_penalty = 1.7f},
                                 {.temperature = 0.7f, .top_k = 5},
                                 {.top_k = 50, .top_p = 0.9f},
                                 {.top_p = 0.8f, .repetition_penalty = 1.05f},
                                 {.temperature = 1.5f, .min_p = 0.2f},
                                 {.temperature = 0.6f, .top_k = 20, .top_p = 0.95f, .min_p = 0.02f, .repetition_penalty = 1.2f},
                                 {.top_k = 1},
                                 {.top_p = 1e-6f}};

}  // namespace

CG_TEST("sample", sample_draws) {
  struct Case {
    int64_t states, V, real, H;
  };
  for (const DType precision : precisions)
    for (const Case& c : {Case{1, 1, 1, 1}, {3, 300, 257, 8}, {70, 2048, 2048, 16}})
      point(std::to_string(c.states) + " states, " + std::to_string(c.real) + " of " + std::to_string(c.V) + " ids" + name_of(precision), [&](Point& p) {
        auto h = random(c.states * c.H, 1);
        for (float& x : h) x *= 3;
        const auto w = random(c.V * c.H, 2);
        std::vector<Row> rows;
        for (int64_t i = 0; i < 150; ++i) {
          Row r{int32_t(i * 7 % c.states), settings[i % std::size(settings)], {17, uint64_t(i), uint64_t(3 * i)}, {}};
          for (int64_t id = i % 5; id < c.real && id < 60; id += 4) r.seen.push_back(int32_t(id));
          rows.push_back(r);
        }
        const auto got = everywhere(p, [&](Device& d) { return both(run(d, h, c.H, w, c.V, c.real, rows)); }, precision);
        const auto states = as(precision, h), head = as(precision, w);
        Doubles logp;
        std::vector<float> got_logp;
        int close = 0;
        for (size_t i = 0; i < rows.size(); ++i) {
          double want = 0, margin = 0;
          const int32_t id = twin(states, c.H, head, c.real, rows[i], &want, &margin);
          if (margin < 1e-6) { ++close; continue; }
          p.expect(got[i] == float(id), "row " + std::to_string(i) + " drew " + std::to_string(got[i]) + " instead of " + std::to_string(id));
          logp.push_back(want);
          got_logp.push_back(got[rows.size() + i]);
        }
        p.expect(close < 5, "draws are seldom at a border");
        p.near("log-prob", got_logp, logp, 2e-6);
        Device d(primary(precision));
        for (const size_t i : {size_t{0}, size_t{77}, size_t{149}}) {  // alone, its state the only one
          Row alone = rows[i];
          const auto begin = h.begin() + alone.state * c.H;
          alone.state = 0;
          p.same("row " + std::to_string(i) + " alone", both(run(d, {begin, begin + c.H}, c.H, w, c.V, c.real, {alone})), {got[i], got[rows.size() + i]});
        }
      });
}

CG_TEST("sample", sample_and_score) {
  for (const DType precision : precisions)
    point(std::string("a drawn id's log-prob is head_logp's, bit for bit") + name_of(precision), [&](Point& p) {
      const int64_t V = 513, H = 24, M = 9;
      auto h = random(M * H, 1);
      for (float& x : h) x *= 3;
      const auto w = random(V * H, 2);
      Device d(primary(precision));
      std::vector<Row> rows;
      std::vector<int32_t> index;
      std::vector<float> temperature;
      for (int32_t i = 0; i < M; ++i) {
        rows.push_back({i, {.temperature = i % 3 == 0 ? 1 : 0.7f, .top_p = 0.9f, .repetition_penalty = 1.3f}, {1, uint64_t(i), 0}, {1, 2, 3}});
        index.push_back(i);
        temperature.push_back(rows.back().params.temperature);
      }
      const Drawn drawn = run(d, h, H, w, V, V, rows);
      const Tensor logp = d.make({M});
      d.backend.head_logp(d.queue(), d.put(h, {M, H}), d.weight(w, V, H), V, {d.put(index), d.put(drawn.ids), d.put(temperature)}, logp, Tensor{},
                          d.workspace(Op::head_logp, M, V, H));
      p.same("log-probs", drawn.logp, d.get<float>(logp));
    });
  point("no row", [&](Point& p) {
    everywhere(p, [&](Device& d) { return both(run(d, {}, 4, random(40, 1), 10, 10, {})); });
  });
  point("logits that are not finite end in E_NAN", [&](Point& p) {
    Device d(primary());
    try {
      run(d, {NAN, 1, 1, 1}, 4, random(40, 1), 10, 10, {{0, {.top_k = 3}, {1, 2, 3}, {}}});
      p.expect(false, "no error");
    } catch (const Error& error) {
      p.expect(error.code() == "E_NAN", "code " + error.code());
    }
  });
}

// χ² of 20,000 draws against the probabilities; the keys are fixed, so this cannot fail by chance.
CG_TEST("sample", sample_distribution) {
  point("20,000 draws follow the probabilities", [&](Point& p) {
    const int64_t V = 8, n = 20000;
    std::vector<float> logits, identity{1};
    for (int64_t j = 0; j < V; ++j) logits.push_back(float(std::log(double(j + 1) / 36)));
    std::vector<Row> rows;
    for (int64_t i = 0; i < n; ++i) rows.push_back({0, {}, {5, uint64_t(i / 100), uint64_t(i % 100)}, {}});
    Device d(primary());
    const Drawn drawn = run(d, identity, 1, logits, V, V, rows);
    Doubles count(static_cast<size_t>(V));
    for (const int32_t id : drawn.ids) ++count[size_t(id)];
    double chi = 0;
    for (int64_t j = 0; j < V; ++j) {
      const double expected = double(n) * double(j + 1) / 36;
      chi += (count[size_t(j)] - expected) * (count[size_t(j)] - expected) / expected;
    }
    p.expect(chi < 24.3, "χ² with 7 degrees of freedom is " + std::to_string(chi) + " (99.9 % below 24.3)");
  });
}

}  // namespace cg::test
