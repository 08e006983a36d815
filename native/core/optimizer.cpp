#include "core/optimizer.h"

#include <algorithm>
#include <cmath>

namespace cg {

OptimizerState::OptimizerState(Backend& backend, int64_t size) : m(backend, size), v(backend, size) {
  const auto queue = backend.queue();
  backend.fill(*queue, m.tensor(), 0);
  backend.fill(*queue, v.tensor(), 0);
  backend.wait(*queue);
}

double global_norm(Backend& backend, Queue& queue, Tensor flat) {
  Arena arena(backend);
  Tensor out, workspace;
  arena.plan([&](Arena& a) {
    out = a.take({1});
    workspace = a.take({(backend.workspace(Op::sum_squares, flat.size(), 1, 1) + 3) / 4});
  });
  backend.sum_squares(queue, flat, out, workspace);
  float sum = 0;
  backend.download(queue, out, &sum);
  return std::sqrt(static_cast<double>(sum));
}

void adamw_step(Backend& backend, Queue& queue, const OptimizerOptions& o, double lr, double clip, double norm, Tensor p, Tensor g,
                int64_t decaying, OptimizerState& state) {
  AdamW step;
  step.lr = static_cast<float>(lr);
  step.beta1 = static_cast<float>(o.beta1);
  step.beta2 = static_cast<float>(o.beta2);
  step.eps = static_cast<float>(o.eps);
  step.weight_decay = static_cast<float>(o.weight_decay);
  step.step = ++state.step;
  step.grad_scale = clip > 0 ? static_cast<float>(std::min(1.0, clip / (norm + 1e-6))) : 1;
  const auto update = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    backend.adamw(queue, step, p.rows(begin, end), g.rows(begin, end), state.m.tensor().rows(begin, end), state.v.tensor().rows(begin, end));
  };
  if (step.weight_decay == 0) decaying = p.size();
  update(0, decaying);
  step.weight_decay = 0;
  update(decaying, p.size());
}

}  // namespace cg
