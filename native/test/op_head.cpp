// Log-probs, entropies and their gradient against float64, on vocabularies with padding rows and rows with several entries.
#include <cmath>

#include "test/device.h"
#include "test/slope.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

namespace {

struct Case {
  const char* name;
  int64_t M, V, real, H;
  std::vector<int32_t> row, target;
  std::vector<float> temperature;
  int64_t E() const { return int64_t(row.size()); }
};

const Case cases[] = {
    {"one id", 1, 1, 1, 1, {0}, {0}, {1}},
    {"no entry", 2, 5, 5, 3, {}, {}, {}},
    {"no row", 0, 5, 5, 3, {}, {}, {}},
    {"padding rows", 3, 40, 33, 7, {0, 1, 2}, {32, 0, 5}, {1, 0.7f, 2.5f}},
    {"several entries a row, rows without", 6, 151, 151, 16, {1, 1, 1, 3, 5, 5}, {3, 3, 150, 0, 77, 76}, {1, 0.7f, 1, 0.3f, 1, 1}},
    {"more rows than a chunk", 70, 20000, 19999, 4, {0, 63, 64, 65, 69}, {1, 19998, 5, 6, 777}, {1, 1, 1, 0.5f, 1}},
};

std::vector<float> states(const Case& c) {
  auto h = random(c.M * c.H, 1);
  for (float& x : h) x *= 6;
  return h;
}

/// [2, E]: log-probs, then entropies.
Doubles twin(const Case& c, const Doubles& h, const std::vector<float>& w) {
  Doubles result(size_t(2 * c.E()));
  for (int64_t e = 0; e < c.E(); ++e) {
    Doubles z(static_cast<size_t>(c.real));
    double top = -INFINITY, sum = 0, mean = 0;
    for (int64_t j = 0; j < c.real; ++j) {
      for (int64_t i = 0; i < c.H; ++i) z[size_t(j)] += h[size_t(c.row[size_t(e)] * c.H + i)] * w[size_t(j * c.H + i)];
      z[size_t(j)] /= double(c.temperature[size_t(e)]);
      top = std::max(top, z[size_t(j)]);
    }
    for (const double x : z) sum += std::exp(x - top);
    const double lse = top + std::log(sum);
    for (const double x : z) mean += std::exp(x - lse) * x;
    result[size_t(e)] = z[size_t(c.target[size_t(e)])] - lse;
    result[size_t(c.E() + e)] = lse - mean;
  }
  return result;
}

LossEntries put(Device& d, const Case& c) { return {d.put(c.row), d.put(c.target), d.put(c.temperature)}; }

}  // namespace

CG_TEST("head_logp", head_log_probs) {
  for (const DType precision : precisions)
    for (const Case& c : cases)
      point(std::string(c.name) + name_of(precision), [&](Point& p) {
        const auto h = states(c), w = random(c.V * c.H, 2);
        const auto got = everywhere(p, [&](Device& d) {
          const Tensor both = d.make({2, c.E()});
          Tensor logp = both.rows(0, 1), entropy = both.rows(1, 2);
          for (Tensor* t : {&logp, &entropy}) t->rank = 1, t->shape[0] = c.E(), t->strides[0] = 1;
          d.backend.head_logp(d.queue(), d.put(h, {c.M, c.H}), d.weight(w, c.V, c.H), c.real, put(d, c), logp, entropy,
                              d.workspace(Op::head_logp, c.M, c.V, c.H));
          return d.get<float>(both);
        }, precision);
        const auto rounded = as(precision, h);
        p.near("log-probs, entropies", got, twin(c, Doubles(rounded.begin(), rounded.end()), as(precision, w)), 2e-6);
        // An entry by itself, the smallest workspace, no entropy.
        Device d(primary(precision));
        for (int64_t e = 0; e < c.E(); ++e) {
          const Case one{"", 1, c.V, c.real, c.H, {0}, {c.target[size_t(e)]}, {c.temperature[size_t(e)]}};
          const Tensor logp = d.make({1});
          const int64_t row = c.row[size_t(e)];
          d.backend.head_logp(d.queue(), d.put(h, {c.M, c.H}).rows(row, row + 1), d.weight(w, c.V, c.H), c.real, put(d, one), logp, Tensor{},
                              d.workspace(Op::head_logp, 1, c.V, c.H));
          p.same("entry " + std::to_string(e) + " alone", d.get<float>(logp), {got[size_t(e)]});
        }
      });
}

CG_TEST("head_backward", head_gradient) {
  for (const DType precision : precisions)
    for (const Case& c : cases)
      point(std::string(c.name) + name_of(precision), [&](Point& p) {
        const auto h = as(precision, states(c)), w = as(precision, random(c.V * c.H, 2)), coefficient = random(c.E(), 3);
        const auto got = everywhere(p, [&](Device& d) {
          const Tensor dh = d.make({c.M, c.H});
          d.backend.head_backward(d.queue(), d.put(h, {c.M, c.H}), d.weight(w, c.V, c.H), c.real, put(d, c), d.put(coefficient), dh,
                                  d.workspace(Op::head_backward, c.M, c.V, c.H));
          return d.get<float>(dh);
        }, precision);
        Doubles want(size_t(c.M * c.H));
        for (int64_t e = 0; e < c.E(); ++e) {  // an entry touches its own row only
          const Case one{"", 1, c.V, c.real, c.H, {0}, {c.target[size_t(e)]}, {c.temperature[size_t(e)]}};
          const auto begin = h.begin() + c.row[size_t(e)] * c.H;
          const auto row = slope(Doubles(begin, begin + c.H), [&](const Doubles& at) { return coefficient[size_t(e)] * twin(one, at, w)[0]; });
          for (int64_t i = 0; i < c.H; ++i) want[size_t(c.row[size_t(e)] * c.H + i)] += row[size_t(i)];
        }
        p.near("dh", got, want, precision == DType::bf16 ? 2e-3 : 5e-6);  // the logits' gradient is rounded to bf16
      });
}

}  // namespace cg::test
