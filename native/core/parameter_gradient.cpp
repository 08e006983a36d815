// The gradient of every parameter of a model. For a linear y = x Wᵀ + b, with x [R, in] and dy [R, out]:
//
//   dW = dyᵀ x    db = dyᵀ 1    norm weights: Σ dy · x · rstd    head [V, H]: Σ dz h    embedding [V, H]: += dx, on top of the head's where the two are one
#include <algorithm>

#include "core/arena.h"
#include "core/backward.h"
#include "core/parameters.h"

namespace cg {
namespace {

class ParameterGradient final : public GradientSink {
 public:
  ParameterGradient(Queue& queue, const Parameters& parameters, const BackwardState& scratch, Tensor into)
      : queue_(queue), parameters_(parameters), model_(*parameters.model()), backend_(*model_.backend), scratch_(scratch), into_(into) {}

  void head(Tensor h, const LossEntries& entries, Tensor coefficient, Tensor workspace) override {
    backend_.head_weight_gradient(queue_, h, model_.head, model_.real_vocab, entries, coefficient, of(model_.head), workspace);
    if (!model_.config.tied) backend_.fill(queue_, of(model_.embedding), 0);
  }

  void linear(int64_t layer, LinearKind kind, Tensor x, Tensor dy, Tensor) override {
    const Linear& l = model_.layers[static_cast<size_t>(layer)].linears[kind];
    backend_.lora_gradient(queue_, dy, x, 1, of(l.weight), scratch_.workspace);
    if (!l.bias) return;
    Tensor column = of(l.bias);  // [out] as [out, 1]
    column.rank = 2;
    column.shape[1] = column.strides[0] = column.strides[1] = 1;
    backend_.fill(queue_, scratch_.ones, 1);
    backend_.lora_gradient(queue_, dy, scratch_.ones, 1, column, scratch_.workspace);
  }

  void norm(Weight weight, Tensor dy, Tensor x, Tensor rstd) override {
    backend_.rms_norm_weight_gradient(queue_, dy, x, rstd, of(weight), scratch_.workspace);
  }

  bool wants_embedding() const override { return true; }
  void embedding(Tensor ids, Tensor dx) override { backend_.embed_gradient(queue_, ids, dx, of(model_.embedding)); }

 private:
  Tensor of(Weight weight) const { return parameters_.in(into_, weight); }

  Queue& queue_;
  const Parameters& parameters_;
  Model& model_;
  Backend& backend_;
  const BackwardState& scratch_;
  Tensor into_;
};

}  // namespace

int64_t Parameters::plan_gradient(Arena& arena, int64_t rows, int64_t head_rows, BackwardState* scratch) const {
  const ModelConfig& c = model_->config;
  const Backend& backend = *model_->backend;
  scratch->ones = arena.take({rows, 1});
  int64_t bytes = std::max(backend.workspace(Op::rms_norm_weight_gradient, rows, c.hidden, 1),
                           backend.workspace(Op::rms_norm_weight_gradient, head_rows, c.hidden, 1));
  if (c.qk_norm) bytes = std::max(bytes, backend.workspace(Op::rms_norm_weight_gradient, rows * c.heads, c.head_dim, 1));
  for (const Linear& l : model_->layers[0].linears)
    for (const int64_t in : {l.in, int64_t{1}}) bytes = std::max(bytes, backend.workspace(Op::lora_gradient, rows, l.out, in));
  return bytes;
}

std::unique_ptr<GradientSink> Parameters::gradient(Queue& queue, const ForwardState&, const BackwardState& scratch, Tensor into) const {
  return std::make_unique<ParameterGradient>(queue, *this, scratch, into);
}

}  // namespace cg
