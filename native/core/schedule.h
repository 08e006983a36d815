// Learning-rate schedules.
#pragma once

#include <cstdint>

namespace cg {

enum class Schedule { constant, linear, cosine };

/// lr of step `step` (from 0), as transformers' get_*_schedule_with_warmup has it: lr·step/warmup before `warmup`; then with d = (step − warmup)/(total −
/// warmup) constant: lr; linear: lr·(1 − d); cosine: lr·½(1 + cos πd). Never below 0 past `total`.
double learning_rate(Schedule, double lr, int64_t step, int64_t warmup, int64_t total);

}  // namespace cg
