// scale, sum_squares and AdamW against float64.
#include <cmath>

#include "test/device.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

CG_TEST("optimiser", sums_of_squares) {
  for (const int64_t n : {0, 1, 33, 4096, 4097, 50000})
    point("sum of squares of " + std::to_string(n) + ", scaled", [&](Point& p) {
      const auto x = random(n, 1);
      const auto run = [&](Device& d, int64_t from, int64_t to) {
        const Tensor xs = d.put(x), out = d.make({1});
        d.backend.scale(d.queue(), xs, 3);
        d.backend.sum_squares(d.queue(), xs.rows(from, to), out, d.workspace(Op::sum_squares, n, 1, 1));
        return d.get<float>(out);
      };
      const auto got = everywhere(p, [&](Device& d) { return run(d, 0, n); });
      double want = 0;
      for (const float v : x) want += 9.0 * double(v) * double(v);
      p.near("sum", got, Doubles{want}, 1e-6);
      Device d(primary());
      std::vector<float> blocks;  // the tree
      for (int64_t from = 0; from < n; from += 4096) blocks.push_back(run(d, from, std::min(from + 4096, n))[0]);
      for (size_t step = 1; step < blocks.size(); step *= 2)
        for (size_t b = 0; b + step < blocks.size(); b += 2 * step) blocks[b] += blocks[b + step];
      p.same("tree of blocks", got, {blocks.empty() ? 0.0f : blocks[0]});
    });
}

CG_TEST("optimiser", adamw_steps) {
  for (const int64_t n : {0, 1, 37, 9000})
    for (const float decay : {0.0f, 0.1f})
      point("AdamW, " + std::to_string(n) + " parameters, weight decay " + std::to_string(decay), [&](Point& p) {
        const auto p0 = random(n, 1);
        const int steps = 5;
        const double lr = 1e-2, b1 = 0.9, b2 = 0.999, eps = 1e-8, clip = 0.5;
        const auto got = everywhere(p, [&](Device& d) {
          const Tensor ps = d.put(p0), m = d.make({n}), v = d.make({n});
          d.backend.fill(d.queue(), m, 0);
          d.backend.fill(d.queue(), v, 0);
          for (int t = 1; t <= steps; ++t)
            d.backend.adamw(d.queue(), {lr, b1, b2, eps, double(decay), t, clip}, ps, d.put(random(n, uint64_t(10 + t))), m, v);
          auto all = d.get<float>(ps);
          for (const Tensor& x : {m, v}) {
            const auto more = d.get<float>(x);
            all.insert(all.end(), more.begin(), more.end());
          }
          return all;
        });
        Doubles want(size_t(3 * n));
        for (int64_t i = 0; i < n; ++i) {
          double x = p0[size_t(i)], m = 0, v = 0;
          for (int t = 1; t <= steps; ++t) {
            const double g = clip * double(random(i + 1, uint64_t(10 + t))[size_t(i)]);
            x *= 1 - lr * double(decay);
            m = b1 * m + (1 - b1) * g;
            v = b2 * v + (1 - b2) * g * g;
            x -= lr * (m / (1 - std::pow(b1, t))) / (std::sqrt(v / (1 - std::pow(b2, t))) + eps);
          }
          want[size_t(i)] = x, want[size_t(n + i)] = m, want[size_t(2 * n + i)] = v;
          if (i == 200) break;  // an element is like another
        }
        for (int64_t i = 201; i < n; ++i)
          for (int part = 0; part < 3; ++part) want[size_t(part * n + i)] = got[size_t(part * n + i)];
        p.near("p, m, v", got, want, 3e-7);
        for (size_t i = size_t(2 * n); i < got.size(); ++i) p.expect(std::abs(double(got[i]) - want[i]) <= 1e-6 * want[i] + 1e-12, "v is off by its 1 - beta2");
      });
}

}  // namespace cg::test
