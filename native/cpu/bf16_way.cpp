#include "cpu/bf16_way.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/rng.h"
#include "reference/denormals.h"

namespace cg::cpu {

namespace {

/// A small product by any of the ways: 786,432 pairs, 3 Mflop.
class Probe {
 public:
  Probe() : threads_(1), w_(DType::bf16, outputs, inputs), x_(values(1, rows)) {
    const std::vector<float> w = values(2, outputs);
    w_.fill(threads_, [&](int64_t n, float* to) { std::memcpy(to, w.data() + n * inputs, size_t(inputs) * 4); });
  }

  std::vector<uint32_t> bits(Way way) {
    multiply(way);
    std::vector<uint32_t> all(y_.size());
    std::memcpy(all.data(), y_.data(), all.size() * 4);
    return all;
  }

  /// Seconds; the best of a few runs, some 20 µs each.
  double seconds(Way way) {
    double best = 1;
    for (int i = 0; i < 8; ++i) best = std::min(best, multiply(way));
    return best;
  }

 private:
  static constexpr int64_t rows = 64, outputs = 96, inputs = 256;

  /// Magnitudes from denormal to large, so that sums align in every way.
  static std::vector<float> values(uint64_t seed, int64_t n) {
    std::vector<float> all(size_t(n * inputs));
    for (size_t i = 0; i < all.size(); ++i) {
      const double u = uniform({seed, 0, i}), e = uniform({seed, 1, i});
      all[i] = float(std::ldexp(2 * u - 1, e < 0.1 ? int(e * 700) - 135 : int(e * 40) - 20));
    }
    return all;
  }

  double multiply(Way way) {
    const int64_t stride = rounded_stride(way, inputs);
    rounded_.resize(size_t(rows * stride));
    round_rows(way, x_.data(), inputs, rows, inputs, rounded_.data(), stride);
    const reference::FlushDenormals flush;
    const auto start = std::chrono::steady_clock::now();
    run_piece(way, {&w_, rounded_.data(), stride, inputs, outputs, nullptr, false, y_.data(), outputs}, {rows, 0, w_.groups()}, partial_.data(),
              widened_.data());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  reference::Threads threads_;
  Panels w_;
  const std::vector<float> x_;
  std::vector<float> rounded_, y_ = std::vector<float>(rows * outputs), partial_ = std::vector<float>(groups_aside * piece_rows * Panels::group_width),
                               widened_ = std::vector<float>(block_depth * Panels::group_width);
};

struct Dot {
  bool exact, fast;
};

Dot probe() {
  Probe probe;
  const bool exact = probe.bits(Way::dot) == probe.bits(Way::split);
  return {exact, exact && probe.seconds(Way::dot) < probe.seconds(Way::widen)};
}

}  // namespace

Way bf16_way(int64_t rows) {
  const Way without = rows <= few_rows ? Way::split : Way::widen;
  if (reference::current_isa() != reference::Isa::avx512bf16) return without;
  static const Dot dot = probe();
  return dot.exact && dot.fast ? Way::dot : without;
}

}  // namespace cg::cpu
