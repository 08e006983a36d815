// RMSNorm, rotary positions, SwiGLU: against float64, and backward passes against central differences of the float64 twin.
#include <cmath>

#include "test/device.h"
#include "test/slope.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

namespace {

Doubles norm_twin(const Doubles& x, const std::vector<float>& w, int64_t rows, int64_t n, double eps) {
  Doubles y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t j = 0; j < n; ++j) squares += x[size_t(r * n + j)] * x[size_t(r * n + j)];
    for (int64_t j = 0; j < n; ++j) y[size_t(r * n + j)] = x[size_t(r * n + j)] / std::sqrt(squares / double(n) + eps) * w[size_t(j)];
  }
  return y;
}

Doubles swiglu_twin(const Doubles& gate, const Doubles& up) {
  Doubles y(gate.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return y;
}

struct Shape {
  int64_t rows, heads, n;
};
std::string text(const Shape& s) { return std::to_string(s.rows) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.n); }

// One element, one row, sizes that are no multiple of anything, no row, more rows than a chunk.
const Shape shapes[] = {{1, 1, 1}, {0, 1, 8}, {1, 1, 576}, {3, 1, 7}, {65, 1, 144}, {2, 1, 4099}, {5, 3, 33}, {33, 2, 64}};

}  // namespace

CG_TEST("rms_norm", rms_norm_forward) {
  for (const Shape& s : shapes)
    point(text(s), [&](Point& p) {
      const int64_t all = s.rows * s.heads * s.n;
      const auto x = random(all, 1), w = random(s.n, 2);
      std::vector<float> last_row;
      const auto run = [&](Device& d, int64_t from) {
        const Tensor xs = d.put(x, {s.rows, s.heads, s.n}), y = d.make({s.rows, s.heads, s.n}), rstd = d.make({s.rows, s.heads});
        d.backend.rms_norm(d.queue(), xs.rows(from, s.rows), d.weight(w, s.n), 1e-6f, y.rows(from, s.rows), rstd.rows(from, s.rows));
        return d.get<float>(y.rows(from, s.rows));
      };
      const auto y = everywhere(p, [&](Device& d) { return run(d, 0); });
      p.near("y", y, norm_twin(Doubles(x.begin(), x.end()), w, s.rows * s.heads, s.n, 1e-6), 1e-6);
      if (s.rows == 0) return;
      Device d(primary());
      p.same("last row alone", run(d, s.rows - 1), std::vector<float>(y.end() - s.heads * s.n, y.end()));
    });
}

CG_TEST("rms_norm_backward", rms_norm_gradient) {
  for (const Shape& s : shapes)
    for (const bool accumulate : {false, true})
      point(text(s) + (accumulate ? " accumulating" : ""), [&](Point& p) {
        const int64_t all = s.rows * s.heads * s.n;
        const auto x = random(all, 1), w = random(s.n, 2), dy = random(all, 3), before = random(all, 4);
        const auto dx = everywhere(p, [&](Device& d) {
          const std::vector<int64_t> shape{s.rows, s.heads, s.n};
          const Tensor xs = d.put(x, shape), y = d.make(shape), rstd = d.make({s.rows, s.heads}), out = accumulate ? d.put(before, shape) : d.make(shape);
          const Weight weight = d.weight(w, s.n);
          d.backend.rms_norm(d.queue(), xs, weight, 1e-6f, y, rstd);
          d.backend.rms_norm_backward(d.queue(), d.put(dy, shape), xs, weight, rstd, out, accumulate);
          return d.get<float>(out);
        });
        Doubles want;
        for (int64_t r = 0; r < s.rows * s.heads; ++r) {
          const std::vector<float> direction(dy.begin() + r * s.n, dy.begin() + (r + 1) * s.n);
          const auto row =
              slope(Doubles(x.begin() + r * s.n, x.begin() + (r + 1) * s.n), [&](const Doubles& at) { return dot(norm_twin(at, w, 1, s.n, 1e-6), direction); });
          want.insert(want.end(), row.begin(), row.end());
        }
        for (size_t i = 0; accumulate && i < want.size(); ++i) want[i] += before[i];
        p.near("dx", dx, want, 3e-6);
      });
}

CG_TEST("rope", rope_both_ways) {
  struct Case {
    int64_t rows, heads, d;
  };
  for (const Case& c : {Case{1, 1, 2}, {0, 2, 8}, {5, 3, 32}, {65, 2, 64}, {7, 1, 6}})
    for (const bool inverse : {false, true})
      point(text({c.rows, c.heads, c.d}) + (inverse ? " inverse" : ""), [&](Point& p) {
        const int64_t half = c.d / 2, positions = 100;
        std::vector<float> cos, sin;
        for (int64_t i = 0; i < positions * half; ++i) {
          const double angle = double(i / half) * std::pow(1e4, -double(i % half) / double(half));
          cos.push_back(float(std::cos(angle)));
          sin.push_back(float(std::sin(angle)));
        }
        std::vector<int32_t> position;
        for (int64_t i = 0; i < c.rows; ++i) position.push_back(int32_t(i * 37 % positions));
        const auto x = random(c.rows * c.heads * c.d, 5);
        const auto run = [&](Device& d, bool in_place) {
          const Tensor xs = d.put(x, {c.rows, c.heads, c.d}), y = in_place ? xs : d.make({c.rows, c.heads, c.d});
          d.backend.rope(d.queue(), xs, d.put(position), d.put(cos, {positions, half}), d.put(sin, {positions, half}), y, inverse);
          return d.get<float>(y);
        };
        const auto y = everywhere(p, [&](Device& d) { return run(d, false); });
        Doubles want(x.size());
        for (int64_t i = 0; i < c.rows * c.heads; ++i)
          for (int64_t j = 0; j < half; ++j) {
            const size_t at = size_t(position[size_t(i / c.heads)] * half + j), low = size_t(i * c.d + j), high = size_t(i * c.d + j + half);
            const double cs = cos[at], sn = inverse ? -sin[at] : sin[at];
            want[low] = x[low] * cs - x[high] * sn;
            want[high] = x[high] * cs + x[low] * sn;
          }
        p.near("y", y, want, 3e-7);
        Device d(primary());
        p.same("in place", run(d, true), y);
      });
}

CG_TEST("swiglu", swiglu_forward_and_gradient) {
  for (const Shape& s : {Shape{1, 1, 1}, {0, 1, 5}, {3, 1, 7}, {65, 1, 384}, {1, 1, 1000}})
    point(text(s), [&](Point& p) {
      const int64_t all = s.rows * s.n;
      auto gate = random(all, 6);
      const auto up = random(all, 7), dy = random(all, 8);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] *= i % 3 == 0 ? 100 : 4;
      const Doubles g(gate.begin(), gate.end()), u(up.begin(), up.end());
      const auto y = everywhere(p, [&](Device& d) {
        const Tensor out = d.make({s.rows, s.n});
        d.backend.swiglu(d.queue(), d.put(gate, {s.rows, s.n}), d.put(up, {s.rows, s.n}), out);
        return d.get<float>(out);
      });
      p.near("y", y, swiglu_twin(g, u), 3e-7);
      const auto gradients = everywhere(p, [&](Device& d) {
        const Tensor both = d.make({2 * s.rows, s.n});
        d.backend.swiglu_backward(d.queue(), d.put(dy, {s.rows, s.n}), d.put(gate, {s.rows, s.n}), d.put(up, {s.rows, s.n}), both.rows(0, s.rows),
                                  both.rows(s.rows, 2 * s.rows));
        return d.get<float>(both);
      });
      Doubles want;
      for (const bool by_gate : {true, false})  // element by element: each has its own pair
        for (size_t i = 0; i < g.size(); ++i)
          want.push_back(
              slope({by_gate ? g[i] : u[i]}, [&](const Doubles& at) { return dy[i] * (by_gate ? swiglu_twin(at, {u[i]}) : swiglu_twin({g[i]}, at))[0]; })[0]);
      p.near("dgate, dup", gradients, want, 1e-6);
    });
}

}  // namespace cg::test
