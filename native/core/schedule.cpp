#include "core/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cg {

double learning_rate(Schedule schedule, double lr, int64_t step, int64_t warmup, int64_t total) {
  if (step < warmup) return lr * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(warmup, 1));
  if (schedule == Schedule::constant) return lr;
  const double d = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(total - warmup, 1)));
  if (schedule == Schedule::linear) return lr * (1 - d);
  return lr * 0.5 * (1 + std::cos(std::numbers::pi * d));
}

}  // namespace cg
