#include "core/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cg {

std::vector<double> inverse_frequencies(const RopeConfig& rope, int64_t head_dim) {
  std::vector<double> inverse(static_cast<size_t>(head_dim / 2));
  for (size_t j = 0; j < inverse.size(); ++j) {
    double f = std::pow(rope.theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
    if (rope.llama3) {
      const double turns = rope.original_positions * f / (2 * std::numbers::pi);  // original length / wavelength
      const double keep = std::clamp((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0);
      f *= keep + (1 - keep) / rope.factor;
    }
    inverse[j] = f;
  }
  return inverse;
}

void append_rope_rows(const std::vector<double>& inverse, int64_t begin, int64_t end, std::vector<float>* cos, std::vector<float>* sin) {
  for (int64_t p = begin; p < end; ++p)
    for (const double f : inverse) {
      const double angle = static_cast<double>(p) * f;
      cos->push_back(static_cast<float>(std::cos(angle)));
      sin->push_back(static_cast<float>(std::sin(angle)));
    }
}

}  // namespace cg
