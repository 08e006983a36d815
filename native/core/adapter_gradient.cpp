// The gradient of LoRA factors: h = A x, y += scale · B h.
//
//   dB = scale · dyᵀ h    dh = scale · dy B    dA = dhᵀ x    dx += dh A        x [R, in], h, dh [R, r], dy [R, out]
#include <algorithm>

#include "core/adapter.h"
#include "core/backward.h"

namespace cg {
namespace {

class AdapterGradient final : public GradientSink {
 public:
  AdapterGradient(Queue& queue, const Adapter& adapter, const ForwardState& state, const BackwardState& scratch, Tensor into)
      : queue_(queue), adapter_(adapter), state_(state), scratch_(scratch), into_(into) {}

  void linear(int64_t layer, LinearKind kind, Tensor x, Tensor dy, Tensor dx) override {
    Backend& backend = *adapter_.model()->backend;
    const AdapterLayout& layout = adapter_.layout();
    const Tensor a = layout.a(adapter_.flat(), layer, kind), b = layout.b(adapter_.flat(), layer, kind);
    if (!a) return;
    const float scale = adapter_.config().scale();
    backend.lora_gradient(queue_, dy, state_.layers[static_cast<size_t>(layer)].shrunk[kind], scale, layout.b(into_, layer, kind), scratch_.workspace);
    backend.lora_expand_backward(queue_, dy, b, scale, scratch_.dshrunk);
    backend.lora_gradient(queue_, scratch_.dshrunk, x, 1, layout.a(into_, layer, kind), scratch_.workspace);
    if (dx) backend.lora_shrink_backward(queue_, scratch_.dshrunk, a, dx);
  }

 private:
  Queue& queue_;
  const Adapter& adapter_;
  const ForwardState& state_;
  const BackwardState& scratch_;
  Tensor into_;
};

}  // namespace

int64_t Adapter::plan_gradient(Arena& arena, int64_t rows, int64_t, BackwardState* scratch) const {
  const Backend& backend = *model_->backend;
  scratch->dshrunk = arena.take({rows, config_.rank});
  int64_t bytes = 0;
  for (const Linear& linear : model_->layers[0].linears) {
    bytes = std::max(bytes, backend.workspace(Op::lora_gradient, rows, config_.rank, linear.in));
    bytes = std::max(bytes, backend.workspace(Op::lora_gradient, rows, linear.out, config_.rank));
  }
  return bytes;
}

std::unique_ptr<GradientSink> Adapter::gradient(Queue& queue, const ForwardState& state, const BackwardState& scratch, Tensor into) const {
  return std::make_unique<AdapterGradient>(queue, *this, state, scratch, into);
}

}  // namespace cg
