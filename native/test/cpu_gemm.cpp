// The kernels of the CPU backend by themselves: every way to multiply in bf16 gives the same bits, also those that this CPU would not choose, and matrices are
// packed a second time only for a gradient.
#include <algorithm>
#include <cmath>

#include "cpu/backend.h"
#include "cpu/gemm.h"
#include "reference/denormals.h"
#include "test/device.h"
#include "test/tap.h"

namespace cg::test {

namespace {

using cpu::Way;

struct Shape {
  int64_t R, N, K;
  int64_t inputs, outputs;  // of them, used
};
const Shape shapes[] = {{1, 1, 1, 1, 1}, {1, 500, 65, 65, 500}, {2, 96, 7, 5, 90}, {5, 20, 4, 1, 20},
                        {3, 150, 64, 63, 149}, {8, 48, 33, 33, 48}, {9, 49, 40, 39, 33}, {128, 200, 50, 50, 200},
                        {30, 60, 3301, 3203, 60}};

/// Values that overflow nowhere and are denormal here and there, so that products are.
std::vector<float> values(int64_t n, uint64_t seed) {
  auto all = random(n, seed);
  for (size_t i = 0; i < all.size(); ++i) all[i] = std::ldexp(all[i], i % 11 == 0 ? -128 : -int(i * 7 % 80));
  return all;
}

std::vector<float> run(const Shape& s, Way way, const cpu::Panels& w, const std::vector<float>& x) {
  const int64_t stride = cpu::rounded_stride(way, s.inputs);
  std::vector<float> rounded(size_t(s.R * stride)), y(size_t(s.R * s.outputs), NAN), partial(cpu::groups_aside * cpu::piece_rows * 48),
      widened(cpu::block_depth * 48);
  cpu::round_rows(way, x.data(), s.K, s.R, s.inputs, rounded.data(), stride);
  const reference::FlushDenormals flush;
  const int64_t groups = (s.outputs + 47) / 48;
  cpu::run_piece(way, {&w, rounded.data(), stride, s.inputs, s.outputs, nullptr, false, y.data(), s.outputs}, {s.R, 0, groups}, partial.data(), widened.data());
  return y;
}

}  // namespace

CG_TEST("gemm", bf16_ways) {
  for (const Shape& s : shapes)
    point(std::to_string(s.R) + "x" + std::to_string(s.outputs) + "x" + std::to_string(s.inputs) + " by every way", [&](Point& p) {
      const auto x = values(s.R * s.K, 1);
      auto weight = values(s.N * s.K, 2);
      for (int64_t n = 0; n < s.N && s.inputs < s.K; ++n) weight[size_t(n * s.K + s.inputs)] = INFINITY;  // not used, even as the other half of a pair
      reference::Threads threads(1);
      cpu::Panels w(DType::bf16, s.N, s.K);
      w.fill(threads, [&](int64_t n, float* to) { std::copy_n(weight.data() + n * s.K, s.K, to); });
      reference::use_isa(reference::Isa::baseline);
      const auto want = run(s, Way::split, w, x);
      p.expect(std::all_of(want.begin(), want.end(), [](float v) { return std::isfinite(v); }), "finite");
      for (const auto isa : {reference::Isa::baseline, reference::Isa::avx2, reference::Isa::avx512, reference::Isa::avx512bf16})
        if (reference::use_isa(isa))
          for (const auto& [way, name] : {std::pair{Way::split, "split"}, {Way::widen, "widen"}, {Way::dot, "dot"}}) {
            if (way == Way::dot && isa != reference::Isa::avx512bf16) continue;
            p.same(std::string(name) + " in " + reference::name_of(isa), run(s, way, w, x), want);
          }
      reference::use_isa(reference::best_isa());
    });
}

CG_TEST("gemm", packing) {
  for (const DType precision : precisions)
    point(std::string("panels and their transpose hold the values") + name_of(precision), [&](Point& p) {
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {97, 50}, {48, 33}, {15, 145}}) {
        const auto weight = random(n * k, 1), want = as(precision, weight);
        reference::Threads threads(2);
        cpu::Panels w(precision, n, k);
        w.fill(threads, [&](int64_t row, float* to) { std::copy_n(weight.data() + row * k, k, to); });
        const cpu::Panels t = w.transposed(threads);
        std::vector<float> row(static_cast<size_t>(k)), column(static_cast<size_t>(n)), by_row, by_column;
        for (int64_t i = 0; i < n; ++i) {
          w.read(i, row.data());
          by_row.insert(by_row.end(), row.begin(), row.end());
        }
        p.same("rows", by_row, want);
        by_column.resize(by_row.size());
        for (int64_t j = 0; j < k; ++j) {
          t.read(j, column.data());
          for (int64_t i = 0; i < n; ++i) by_column[size_t(i * k + j)] = column[size_t(i)];
        }
        p.same("columns", by_column, want);
      }
    });
}

CG_TEST("gemm", second_packing) {
  point("a gradient packs a matrix again, once", [&](Point& p) {
    cpu::CpuBackend backend(1, DType::f32);
    Device d(backend);
    const int64_t n = 96, k = 48, bytes = n * k * 4;
    const Weight w = d.weight(random(n * k, 1), n, k);
    p.expect(backend.weight_bytes() == bytes, "loaded: " + std::to_string(backend.weight_bytes()));
    const Tensor x = d.put(random(3 * k, 2), {3, k}), y = d.make({3, n});
    backend.matmul(d.queue(), x, w, Weight{}, y, false, Tensor{});
    p.expect(backend.weight_bytes() == bytes, "multiplied: " + std::to_string(backend.weight_bytes()));
    for (int i = 0; i < 2; ++i) {
      backend.matmul_backward(d.queue(), y, w, x, false, Tensor{});
      p.expect(backend.weight_bytes() == 2 * bytes, "gradient: " + std::to_string(backend.weight_bytes()));
    }
  });
}

}  // namespace cg::test
