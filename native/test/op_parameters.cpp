// Gradients of the parameters that are no linears, and new values for loaded weights: against float64 sums, and against the chains of numerics.md bit for bit.
#include <cmath>

#include "core/dtype.h"
#include "core/error.h"
#include "test/device.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

namespace {

/// Sums [n] of blocks joined by a binary tree.
std::vector<float> joined(std::vector<std::vector<float>> blocks) {
  for (size_t step = 1; step < blocks.size(); step *= 2)
    for (size_t b = 0; b + step < blocks.size(); b += 2 * step)
      for (size_t j = 0; j < blocks[b].size(); ++j) blocks[b][j] += blocks[b + step][j];
  return blocks[0];
}

struct HeadCase {
  const char* name;
  int64_t M, V, real, H;
  std::vector<int32_t> row, target;
  std::vector<float> temperature;
};

const HeadCase head_cases[] = {
    {"one id", 1, 1, 1, 1, {0}, {0}, {1}},
    {"no entry", 2, 5, 5, 3, {}, {}, {}},
    {"no row", 0, 5, 5, 3, {}, {}, {}},
    {"padding rows", 3, 40, 33, 7, {0, 1, 2}, {32, 0, 5}, {1, 0.7f, 2.5f}},
    {"several entries a row, rows without", 6, 151, 151, 33, {1, 1, 1, 3, 5, 5}, {3, 3, 150, 0, 77, 76}, {1, 0.7f, 1, 0.3f, 1, 1}},
    {"more rows than a chunk", 70, 9000, 8999, 5, {0, 63, 64, 65, 69}, {1, 8998, 5, 6, 777}, {1, 1, 1, 0.5f, 1}},
};

}  // namespace

CG_TEST("parameter_gradient", norm_weight_gradient) {
  struct Case {
    int64_t rows, heads, n;
  };
  for (const Case& c : {Case{1, 1, 1}, {0, 1, 8}, {3, 1, 7}, {255, 1, 33}, {257, 1, 64}, {100, 3, 32}, {1300, 1, 5}, {520, 2, 17}})
    point("norm " + std::to_string(c.rows) + "x" + std::to_string(c.heads) + "x" + std::to_string(c.n), [&](Point& p) {
      const int64_t rows = c.rows * c.heads, size = rows * c.n;
      const auto dy = random(size, 1), x = random(size, 2), rstd = random(rows, 3);
      const auto got = everywhere(p, [&](Device& d) {
        const Tensor dw = d.make({c.n});
        d.backend.rms_norm_weight_gradient(d.queue(), d.put(dy, {c.rows, c.heads, c.n}), d.put(x, {c.rows, c.heads, c.n}), d.put(rstd), dw,
                                           d.workspace(Op::rms_norm_weight_gradient, rows, c.n, 1));
        return d.get<float>(dw);
      });
      Doubles want(size_t(c.n));
      std::vector<std::vector<float>> blocks(1, std::vector<float>(size_t(c.n)));
      for (int64_t i = 0; i < rows; ++i) {
        if (i > 0 && i % 256 == 0) blocks.emplace_back(size_t(c.n));
        for (int64_t j = 0; j < c.n; ++j) {
          const size_t at = size_t(i * c.n + j);
          want[size_t(j)] += double(dy[at]) * x[at] * rstd[size_t(i)];
          blocks.back()[size_t(j)] = std::fma(dy[at], x[at] * rstd[size_t(i)], blocks.back()[size_t(j)]);
        }
      }
      p.near("dw", got, want, 2e-6);
      p.same("chains and tree", got, joined(blocks));
    });
}

CG_TEST("parameter_gradient", embedding_gradient) {
  struct Case {
    int64_t V, H, R;
  };
  for (const Case& c : {Case{1, 1, 1}, {5, 3, 0}, {7, 40, 300}, {300, 33, 20}, {3, 65, 64}})
    point("embed " + std::to_string(c.R) + " of " + std::to_string(c.V) + "x" + std::to_string(c.H), [&](Point& p) {
      const auto dx = random(c.R * c.H, 1), before = random(c.V * c.H, 2);
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < c.R; ++i) ids.push_back(int32_t(i * i * 7 % c.V));
      const auto got = everywhere(p, [&](Device& d) {
        const Tensor out = d.put(before, {c.V, c.H});
        d.backend.embed_gradient(d.queue(), d.put(ids), d.put(dx, {c.R, c.H}), out);
        return d.get<float>(out);
      });
      std::vector<float> chains = before;
      Doubles want(before.begin(), before.end());
      for (int64_t i = 0; i < c.R; ++i)
        for (int64_t j = 0; j < c.H; ++j) {
          const size_t to = size_t(ids[size_t(i)] * c.H + j), from = size_t(i * c.H + j);
          chains[to] += dx[from];
          want[to] += dx[from];
        }
      p.near("out", got, want, 2e-6);
      p.same("chains", got, chains);
    });
  point("an id outside is E_INDEX", [&](Point& p) {
    Device d(primary());
    d.backend.embed_gradient(d.queue(), d.put(std::vector<int32_t>{3}), d.put(random(2, 1), {1, 2}), d.put(random(6, 1), {3, 2}));
    std::string code;
    try {
      d.backend.wait(d.queue());
    } catch (const Error& error) {
      code = error.code();
    }
    p.expect(code == "E_INDEX", "code " + code);
  });
}

CG_TEST("parameter_gradient", head_weights) {
  for (const HeadCase& c : head_cases)
    point(std::string("head, ") + c.name, [&](Point& p) {
      const auto E = int64_t(c.row.size());
      auto h = random(c.M * c.H, 1);
      for (float& x : h) x *= 6;
      const auto w = random(c.V * c.H, 2), coefficient = random(E, 3);
      const auto run = [&](Device& d, int64_t rows_at_once) {
        const Tensor out = d.make({c.V, c.H});
        const LossEntries entries{d.put(c.row), d.put(c.target), d.put(c.temperature)};
        d.backend.head_weight_gradient(d.queue(), d.put(h, {c.M, c.H}), d.weight(w, c.V, c.H), c.real, entries, d.put(coefficient), out,
                                       d.workspace(Op::head_weight_gradient, rows_at_once, c.V, c.H));
        return d.get<float>(out);
      };
      const auto got = everywhere(p, [&](Device& d) { return run(d, c.M); });
      Doubles want(size_t(c.V * c.H));
      for (int64_t e = 0; e < E; ++e) {  // d logp / d head[j] = ([j = t] − p[j]) / T · h
        const float* state = h.data() + c.row[size_t(e)] * c.H;
        const double T = double(c.temperature[size_t(e)]);
        Doubles z(static_cast<size_t>(c.real));
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < c.real; ++j) {
          for (int64_t i = 0; i < c.H; ++i) z[size_t(j)] += double(state[i]) * w[size_t(j * c.H + i)] / T;
          top = std::max(top, z[size_t(j)]);
        }
        for (const double x : z) sum += std::exp(x - top);
        for (int64_t j = 0; j < c.real; ++j) {
          const double slope = ((j == c.target[size_t(e)] ? 1 : 0) - std::exp(z[size_t(j)] - top) / sum) * coefficient[size_t(e)] / T;
          for (int64_t i = 0; i < c.H; ++i) want[size_t(j * c.H + i)] += slope * double(state[i]);
        }
      }
      p.near("out", got, want, 3e-6);
      Device d(primary());
      p.same("one row at a time", run(d, 1), got);
      // The gradient by h and by the head come from one dz: ⟨h, dh⟩ = ⟨head, dhead⟩, both being Σ dz z.
      if (c.M == 0) return;
      const Tensor dh = d.make({c.M, c.H});
      d.backend.head_backward(d.queue(), d.put(h, {c.M, c.H}), d.weight(w, c.V, c.H), c.real, {d.put(c.row), d.put(c.target), d.put(c.temperature)},
                              d.put(coefficient), dh, d.workspace(Op::head_backward, c.M, c.V, c.H));
      const auto by_state = d.get<float>(dh);
      double left = 0, right = 0;
      for (size_t i = 0; i < h.size(); ++i) left += double(h[i]) * by_state[i];
      for (size_t i = 0; i < w.size(); ++i) right += double(w[i]) * got[i];
      p.near("adjoint", std::vector<double>{left}, std::vector<double>{right}, 1e-4);
    });
}

CG_TEST("set_weight", new_values) {
  struct Case {
    int64_t n, k;
  };
  for (const Case& c : {Case{1, 1}, {33, 17}, {64, 32}, {100, 48}})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      point(std::to_string(c.n) + "x" + std::to_string(c.k) + (dtype == DType::f32 ? " f32" : dtype == DType::bf16 ? " bf16" : " f16"), [&](Point& p) {
        const auto before = random(c.n * c.k, 1), after = random(c.n * c.k, 2), x = random(3 * c.k, 3), dy = random(3 * c.n, 4);
        std::vector<float> stored = after;
        for (float& v : stored) v = dtype == DType::f32 ? v : dtype == DType::bf16 ? widen_bf16(round_to_bf16(v)) : widen_f16(round_to_f16(v));
        // Products, their backward pass and rows of the weight, asked before and after the change.
        const auto use = [&](Device& d, Weight w) {
          const Tensor y = d.make({3, c.n}), dx = d.make({3, c.k}), row = d.make({1, c.k});
          d.backend.matmul(d.queue(), d.put(x, {3, c.k}), w, Weight{}, y, false, d.workspace(Op::matmul, 3, c.n, c.k));
          d.backend.matmul_backward(d.queue(), d.put(dy, {3, c.n}), w, dx, false, d.workspace(Op::matmul_backward, 3, c.n, c.k));
          d.backend.embed(d.queue(), w, d.put(std::vector<int32_t>{int32_t(c.n - 1)}), row);
          auto all = d.get<float>(y);
          for (const Tensor& t : {dx, row})
            for (const float v : d.get<float>(t)) all.push_back(v);
          return all;
        };
        const auto changed = everywhere(p, [&](Device& d) {
          const Weight w = d.weight(before, c.n, c.k);
          use(d, w);
          d.backend.set_weight(d.queue(), w, d.put(after, {c.n, c.k}), dtype);
          return use(d, w);
        });
        p.same("as if it had been loaded", changed, everywhere(p, [&](Device& d) { return use(d, d.weight(stored, c.n, c.k)); }));
      });
  point("a vector", [&](Point& p) {
    const auto x = random(2 * 37, 1), after = random(37, 2);
    const auto use = [&](Device& d, Weight w) {
      const Tensor y = d.make({2, 37});
      d.backend.rms_norm(d.queue(), d.put(x, {2, 37}), w, 1e-6f, y, Tensor{});
      return d.get<float>(y);
    };
    const auto changed = everywhere(p, [&](Device& d) {
      const Weight w = d.weight(random(37, 3), 37);
      d.backend.set_weight(d.queue(), w, d.put(after), DType::f32);
      return use(d, w);
    });
    p.same("as if it had been loaded", changed, everywhere(p, [&](Device& d) { return use(d, d.weight(after, 37)); }));
  });
}

}  // namespace cg::test
