// AdamW on flat spans, with the gradient clipped by its global norm.
#pragma once

#include <atomic>

#include "core/adapter.h"
#include "core/arena.h"
#include "core/backend.h"

namespace cg {

struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};

/// First and second moment and the number of updates made.
struct OptimizerState {
  OptimizerState(Backend& backend, int64_t size);

  FlatSpan m, v;
  std::atomic<int64_t> step{0};
};

/// Euclidean norm of a flat span; blocks.
double global_norm(Backend&, Queue&, Tensor flat);

/// One update of p (Loshchilov & Hutter 2019, algorithm 2): p *= 1 − lr·wd; moments of the clipped gradient; p −= lr·m̂ / (√v̂ + eps). The gradient counts
/// min(1, clip / (norm + 1e-6)) times, as torch.nn.utils.clip_grad_norm_; clip ≤ 0 is off. Weights decay in the first `decaying` elements only. Advances
/// state.step. lr 0 moves nothing but the moments.
void adamw_step(Backend&, Queue&, const OptimizerOptions&, double lr, double clip, double norm, Tensor p, Tensor g, int64_t decaying,
                OptimizerState&);

}  // namespace cg
