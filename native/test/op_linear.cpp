// Frozen linears and LoRA factors against float64 sums; a linear op's derivative is checked by its adjoint: ⟨f(x), dy⟩ = ⟨x, f'(dy)⟩ and the twin.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/dtype.h"
#include "reference/denormals.h"
#include "test/device.h"
#include "test/slope.h"
#include "test/tap.h"

namespace cg::test {

using Doubles = std::vector<double>;

namespace {

struct Shape {
  int64_t R, N, K;
};
std::string text(const Shape& s) { return std::to_string(s.R) + "x" + std::to_string(s.N) + "x" + std::to_string(s.K); }

// One element, one row, no row, one output more or less than a vector or a panel, 65 rows, odd everything, more rows, inputs and outputs than a block, a tall
// vocabulary, one input, one output.
const Shape shapes[] = {{1, 1, 1},     {1, 64, 64},    {0, 5, 7},     {3, 33, 17},  {65, 40, 24},  {7, 31, 100}, {130, 129, 67}, {2, 300, 600},
                        {33, 2048, 48}, {20, 1100, 5}, {1, 500, 33}, {4, 15, 33}, {9, 17, 3201}, {6, 97, 2},   {40, 5, 1},     {300, 1, 19}, {9, 790, 1541}};

/// left [R, K] · right, where right(k, n): [R, N].
template <class F>
Doubles product(const std::vector<float>& left, int64_t R, int64_t K, int64_t N, const F& right) {
  Doubles y(size_t(R * N));
  for (int64_t r = 0; r < R; ++r)
    for (int64_t k = 0; k < K; ++k)
      for (int64_t n = 0; n < N; ++n) y[size_t(r * N + n)] += double(left[size_t(r * K + k)]) * right(k, n);
  return y;
}

/// The same in fp32 as numerics.md has it: one chain of fused steps, k ascending from +0; in bf16 each pair the odd one first, and no denormals.
template <class F>
std::vector<float> chains(DType precision, const std::vector<float>& left, int64_t R, int64_t K, int64_t N, const F& right) {
  std::optional<reference::FlushDenormals> flush;
  if (precision == DType::bf16) flush.emplace();
  std::vector<float> y(size_t(R * N));
  for (int64_t r = 0; r < R; ++r)
    for (int64_t n = 0; n < N; ++n) {
      float& sum = y[size_t(r * N + n)];
      const auto step = [&](int64_t k) { sum = k < K ? std::fma(left[size_t(r * K + k)], right(k, n), sum) : std::fma(0.0f, 0.0f, sum); };
      for (int64_t k = 0; k < K; k += precision == DType::bf16 ? 2 : 1) {
        if (precision == DType::bf16) step(k + 1);
        step(k);
      }
    }
  return y;
}

}  // namespace

CG_TEST("matmul", matmul_forward) {
  for (const DType precision : precisions)
    for (const Shape& s : shapes)
      for (const int form : {0, 1, 2})  // plain, with bias, with bias and accumulating
        point(text(s) + (form == 0 ? "" : form == 1 ? " bias" : " bias accumulating") + name_of(precision), [&](Point& p) {
          const auto x = random(s.R * s.K, 1), w = random(s.N * s.K, 2), bias = random(s.N, 3), before = random(s.R * s.N, 4);
          const auto run = [&](Device& d, int64_t from, int64_t to) {
            const Tensor xs = d.put(x, {s.R, s.K}), y = form == 2 ? d.put(before, {s.R, s.N}) : d.make({s.R, s.N});
            d.backend.matmul(d.queue(), xs.rows(from, to), d.weight(w, s.N, s.K), form > 0 ? d.weight(bias, s.N) : Weight{}, y.rows(from, to), form == 2,
                             d.workspace(Op::matmul, s.R, s.N, s.K));
            return d.get<float>(y.rows(from, to));
          };
          const auto y = everywhere(p, [&](Device& d) { return run(d, 0, s.R); }, precision);
          const auto left = as(precision, x), values = as(precision, w);
          const auto right = [&](int64_t k, int64_t n) { return values[size_t(n * s.K + k)]; };
          auto want = product(left, s.R, s.K, s.N, right);
          for (size_t i = 0; i < want.size(); ++i) want[i] += (form > 0 ? bias[i % size_t(s.N)] : 0) + (form == 2 ? before[i] : 0);
          p.near("y", y, want, 2e-6);
          if (form == 0) p.same("chains", y, chains(precision, left, s.R, s.K, s.N, right));
          Device d(primary(precision));
          for (const int64_t row : {int64_t{0}, s.R / 2, s.R - 1})
            if (row >= 0 && row < s.R)
              p.same("row " + std::to_string(row) + " alone", run(d, row, row + 1), std::vector<float>(y.begin() + row * s.N, y.begin() + (row + 1) * s.N));
          if (s.R > 2) p.same("all rows but the first", run(d, 1, s.R), std::vector<float>(y.begin() + s.N, y.end()));
        });
}

CG_TEST("matmul_backward", matmul_gradient) {
  for (const DType precision : precisions)
    for (const Shape& s : shapes)
      for (const bool accumulate : {false, true})
        point(text(s) + (accumulate ? " accumulating" : "") + name_of(precision), [&](Point& p) {
          const auto dy = random(s.R * s.N, 1), w = random(s.N * s.K, 2), before = random(s.R * s.K, 4);
          const auto run = [&](Device& d, int64_t from, int64_t to) {
            const Tensor dys = d.put(dy, {s.R, s.N}), dx = accumulate ? d.put(before, {s.R, s.K}) : d.make({s.R, s.K});
            d.backend.matmul_backward(d.queue(), dys.rows(from, to), d.weight(w, s.N, s.K), dx.rows(from, to), accumulate,
                                      d.workspace(Op::matmul_backward, s.R, s.N, s.K));
            return d.get<float>(dx.rows(from, to));
          };
          const auto dx = everywhere(p, [&](Device& d) { return run(d, 0, s.R); }, precision);
          const auto left = as(precision, dy), values = as(precision, w);
          const auto right = [&](int64_t n, int64_t k) { return values[size_t(n * s.K + k)]; };
          auto want = product(left, s.R, s.N, s.K, right);
          for (size_t i = 0; accumulate && i < want.size(); ++i) want[i] += before[i];
          p.near("dx", dx, want, 3e-6);
          if (!accumulate) p.same("chains", dx, chains(precision, left, s.R, s.N, s.K, right));
          Device d(primary(precision));
          for (const int64_t row : {int64_t{0}, s.R - 1})
            if (row >= 0 && row < s.R)
              p.same("row " + std::to_string(row) + " alone", run(d, row, row + 1), std::vector<float>(dx.begin() + row * s.K, dx.begin() + (row + 1) * s.K));
        });
}

// Products, sums and inputs on both sides of the smallest normal number: fp32 keeps denormals, bf16 has none.
CG_TEST("matmul", matmul_denormals) {
  for (const DType precision : precisions)
    point(std::string("denormals") + name_of(precision), [&](Point& p) {
      const Shape s{21, 50, 37};
      const auto scaled = [](std::vector<float> values, int exponent) {  // …, 2^exponent times 1, 2^-3, … 2^-18
        for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], exponent - int(i % 7) * 3);
        return values;
      };
      for (const auto& [of_x, of_w] : {std::pair{-60, -60}, {-120, 0}, {0, -122}}) {
        const auto x = scaled(random(s.R * s.K, 1), of_x), w = scaled(random(s.N * s.K, 2), of_w);
        const auto y = everywhere(p, [&](Device& d) {
          const Tensor out = d.make({s.R, s.N});
          d.backend.matmul(d.queue(), d.put(x, {s.R, s.K}), d.weight(w, s.N, s.K), Weight{}, out, false, d.workspace(Op::matmul, s.R, s.N, s.K));
          return d.get<float>(out);
        }, precision);
        const auto left = as(precision, x), values = as(precision, w);
        p.same("chains", y, chains(precision, left, s.R, s.K, s.N, [&](int64_t k, int64_t n) { return values[size_t(n * s.K + k)]; }));
        const auto denormals = std::count_if(y.begin(), y.end(), [](float v) { return std::fpclassify(v) == FP_SUBNORMAL; });
        p.expect(precision == DType::bf16 ? denormals == 0 : denormals > 0, std::to_string(denormals) + " denormals");
      }
    });
}

// A row-strided x and y: what a slice of a wider buffer is.
CG_TEST("matmul", matmul_strided) {
  point("strided rows", [&](Point& p) {
    const auto x = random(9 * 50, 1), w = random(33 * 20, 2);
    const auto run = [&](Device& d, bool strided) {
      Tensor xs = d.put(x, {9, 50}), y = d.make({9, 70});
      xs.shape[1] = 20;
      y.shape[1] = 33;
      if (!strided) {
        const Tensor dense = d.make({9, 20}), out = d.make({9, 33});
        d.backend.copy(d.queue(), xs, dense);
        xs = dense;
        y = out;
      }
      d.backend.matmul(d.queue(), xs, d.weight(w, 33, 20), Weight{}, y, false, d.workspace(Op::matmul, 9, 33, 20));
      const Tensor dense = d.make({9, 33});
      d.backend.copy(d.queue(), y, dense);
      return d.get<float>(dense);
    };
    const auto dense = everywhere(p, [&](Device& d) { return run(d, false); });
    p.same("strided", everywhere(p, [&](Device& d) { return run(d, true); }), dense);
  });
}

CG_TEST("load_weight", weight_types) {
  point("bf16 and f16 are widened exactly", [&](Point& p) {
    const int64_t n = 37, k = 5, shape[] = {n, k};
    std::vector<uint16_t> half, brain;
    std::vector<float> from_half, from_brain, x(size_t(k * k));
    for (int64_t i = 0; i < n * k; ++i) {
      half.push_back(uint16_t(i * 331 % 0x7c00 | (i % 2) << 15));
      brain.push_back(uint16_t(0x3000 + i * 113 % 0x2000));
      from_half.push_back(widen_f16(half.back()));
      from_brain.push_back(widen_bf16(brain.back()));
    }
    for (int64_t i = 0; i < k; ++i) x[size_t(i * k + i)] = 1;
    const auto through = [&](Device& d, const void* bits, DType dtype) {  // the identity times W is W transposed
      const Weight w = d.backend.load_weight("w", bits, dtype, shape);
      const Tensor y = d.make({k, n});
      d.backend.matmul(d.queue(), d.put(x, {k, k}), w, Weight{}, y, false, d.workspace(Op::matmul, k, n, k));
      const auto got = d.get<float>(y);
      d.backend.release(w);
      return got;
    };
    const auto transposed = [&](const std::vector<float>& w) {
      std::vector<float> t;
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) t.push_back(w[size_t(j * k + i)] + 0.0f);  // + 0: the chain starts from +0
      return t;
    };
    p.same("f16", everywhere(p, [&](Device& d) { return through(d, half.data(), DType::f16); }), transposed(from_half));
    p.same("bf16", everywhere(p, [&](Device& d) { return through(d, brain.data(), DType::bf16); }), transposed(from_brain));
  });
}

CG_TEST("lora", lora_forward_and_backward) {
  struct Case {
    int64_t R, N, K, r;
  };
  // Every remainder of a tile in rows and in columns, ranks on both sides of a vector, several tasks of rows, rows that are 4 KB apart.
  for (const Case& c : {Case{1, 1, 1, 1}, {0, 8, 8, 4}, {1, 144, 128, 8}, {65, 33, 17, 16}, {3, 100, 7, 17}, {70, 48, 130, 32}, {2, 20, 20, 33},
                        {13, 150, 47, 1}, {31, 63, 65, 8}, {9, 112, 80, 64}, {301, 129, 95, 15}, {24, 16, 300, 49}, {23, 5, 1024, 3}})
    point(text({c.R, c.N, c.K}) + " rank " + std::to_string(c.r), [&](Point& p) {
      const auto x = random(c.R * c.K, 1), a = random(c.r * c.K, 2), b = random(c.N * c.r, 3), dy = random(c.R * c.N, 4), h = random(c.R * c.r, 5),
                 y0 = random(c.R * c.N, 6), dx0 = random(c.R * c.K, 7);
      const float scale = 0.75f;
      const auto run = [&](Device& d, int which, int64_t from, int64_t to) {
        const Tensor as = d.put(a, {c.r, c.K}), bs = d.put(b, {c.N, c.r});
        Tensor out;
        if (which == 0) d.backend.lora_shrink(d.queue(), d.put(x, {c.R, c.K}).rows(from, to), as, (out = d.make({c.R, c.r})).rows(from, to));
        if (which == 1) d.backend.lora_expand(d.queue(), d.put(h, {c.R, c.r}).rows(from, to), bs, scale, (out = d.put(y0, {c.R, c.N})).rows(from, to));
        if (which == 2) d.backend.lora_expand_backward(d.queue(), d.put(dy, {c.R, c.N}).rows(from, to), bs, scale, (out = d.make({c.R, c.r})).rows(from, to));
        if (which == 3) d.backend.lora_shrink_backward(d.queue(), d.put(h, {c.R, c.r}).rows(from, to), as, (out = d.put(dx0, {c.R, c.K})).rows(from, to));
        return d.get<float>(out.rows(from, to));
      };
      const char* names[] = {"shrink", "expand", "expand backward", "shrink backward"};
      const Doubles wants[] = {product(x, c.R, c.K, c.r, [&](int64_t k, int64_t j) { return a[size_t(j * c.K + k)]; }),
                               product(h, c.R, c.r, c.N, [&](int64_t j, int64_t n) { return scale * b[size_t(n * c.r + j)]; }),
                               product(dy, c.R, c.N, c.r, [&](int64_t n, int64_t j) { return scale * b[size_t(n * c.r + j)]; }),
                               product(h, c.R, c.r, c.K, [&](int64_t j, int64_t k) { return a[size_t(j * c.K + k)]; })};
      for (int which = 0; which < 4; ++which) {
        const auto got = everywhere(p, [&](Device& d) { return run(d, which, 0, c.R); });
        auto want = wants[which];
        for (size_t i = 0; i < want.size(); ++i) want[i] += which == 1 ? y0[i] : which == 3 ? dx0[i] : 0;
        p.near(names[which], got, want, 2e-6);
        Device d(primary());
        const int64_t width = c.R == 0 ? 0 : int64_t(got.size()) / c.R;
        if (c.R > 0) p.same(std::string(names[which]) + ", last row alone", run(d, which, c.R - 1, c.R), std::vector<float>(got.end() - width, got.end()));
      }
    });
}

CG_TEST("lora_gradient", lora_gradients) {
  struct Case {
    int64_t rows, p, q;
  };
  // Every remainder of a tile, either side the wider one, one column (a bias), an odd number of blocks, more columns and rows than a task has.
  for (const Case& c : {Case{1, 1, 1}, {0, 3, 5}, {0, 70, 1}, {255, 8, 48}, {256, 16, 33}, {257, 100, 16}, {769, 5, 17}, {1500, 65, 40}, {1024, 4, 4},
                        {300, 1, 77}, {513, 77, 1}, {512, 17, 64}, {1301, 64, 17}, {5, 29, 31}, {270, 201, 403}, {40, 390, 197}, {520, 11, 7000}})
    point(text({c.rows, c.p, c.q}), [&](Point& p) {
      const auto left = random(c.rows * c.p, 1), right = random(c.rows * c.q, 2);
      const float scale = 0.5f;
      const auto run = [&](Device& d, int64_t from, int64_t to, float factor) {
        const Tensor out = d.make({c.p, c.q});
        d.backend.lora_gradient(d.queue(), d.put(left, {c.rows, c.p}).rows(from, to), d.put(right, {c.rows, c.q}).rows(from, to), factor, out,
                                d.workspace(Op::lora_gradient, c.rows, c.p, c.q));
        return d.get<float>(out);
      };
      const auto got = everywhere(p, [&](Device& d) { return run(d, 0, c.rows, scale); });
      Doubles want(size_t(c.p * c.q));
      for (int64_t i = 0; i < c.rows; ++i)
        for (int64_t j = 0; j < c.p; ++j)
          for (int64_t k = 0; k < c.q; ++k) want[size_t(j * c.q + k)] += double(scale) * left[size_t(i * c.p + j)] * right[size_t(i * c.q + k)];
      p.near("out", got, want, 1e-5);
      // The tree: blocks of 256 rows by themselves, joined in pairs, are the whole.
      Device d(primary());
      std::vector<std::vector<float>> blocks;
      for (int64_t from = 0; from < c.rows; from += 256) blocks.push_back(run(d, from, std::min(from + 256, c.rows), 1));
      for (size_t step = 1; step < blocks.size(); step *= 2)
        for (size_t b = 0; b + step < blocks.size(); b += 2 * step)
          for (size_t i = 0; i < got.size(); ++i) blocks[b][i] += blocks[b + step][i];
      if (blocks.empty()) return;
      for (float& v : blocks[0]) v *= scale;
      p.same("tree of blocks", got, blocks[0]);
    });
}

// Operands and outputs that are slices of wider buffers: the same bits, and nothing else is written.
CG_TEST("lora", lora_strided) {
  point("strided rows", [&](Point& p) {
    const int64_t R = 37, N = 50, K = 35, r = 9;
    const auto wider = [](const std::vector<float>& dense, int64_t columns) {
      std::vector<float> wide;
      for (size_t i = 0; i < dense.size(); i += size_t(columns)) {
        wide.insert(wide.end(), dense.begin() + int64_t(i), dense.begin() + int64_t(i) + columns);
        wide.insert(wide.end(), 7, 3.0f);
      }
      return wide;
    };
    const auto run = [&](Device& d, int which, bool strided) {
      const auto put = [&](uint64_t seed, int64_t rows, int64_t columns) {
        const auto values = random(rows * columns, seed);
        Tensor t = strided ? d.put(wider(values, columns), {rows, columns + 7}) : d.put(values, {rows, columns});
        t.shape[1] = columns;
        return t;
      };
      const Tensor x = put(1, R, K), y = put(2, R, N), h = put(3, R, r), a = put(4, r, K), b = put(5, N, r), none = d.workspace(Op::lora_gradient, R, N, K);
      Tensor out;
      if (which == 0) d.backend.lora_shrink(d.queue(), x, a, out = h);
      if (which == 1) d.backend.lora_expand(d.queue(), h, b, 0.75f, out = y);
      if (which == 2) d.backend.lora_expand_backward(d.queue(), y, b, 0.75f, out = h);
      if (which == 3) d.backend.lora_shrink_backward(d.queue(), h, a, out = x);
      if (which == 4) d.backend.lora_gradient(d.queue(), h, x, 1, out = a, none);
      if (which == 5) d.backend.lora_gradient(d.queue(), y, h, 0.75f, out = b, none);
      if (which == 6) d.backend.lora_gradient(d.queue(), y, x, 1, out = put(6, N, K), none);
      const int64_t columns = out.shape[1];
      if (strided) out.shape[1] += 7;
      const auto values = d.get<float>(out);
      return strided ? values : wider(values, columns);
    };
    const char* names[] = {"shrink", "expand", "expand backward", "shrink backward", "gradient of A", "gradient of B", "gradient"};
    for (int which = 0; which < 7; ++which) {
      const auto dense = everywhere(p, [&](Device& d) { return run(d, which, false); });
      p.same(names[which], everywhere(p, [&](Device& d) { return run(d, which, true); }), dense);
    }
  });
}

}  // namespace cg::test
