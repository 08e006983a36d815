// All weights of a model, in training: fp32 values as one flat span, of which the model computes with what its checkpoint will hold.
//
// A checkpoint may be bf16, and rounding an update of 1e-4 of a weight to 8 bits loses most of them; so the optimiser works on fp32 values, and after each update
// the model gets them rounded to the checkpoint's type. A written checkpoint is therefore, bit for bit, the model whose log-probs training saw.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/model.h"
#include "core/trainee.h"

namespace cg {

class Parameters final : public Trainee {
 public:
  /// Begins training of a model's weights, from the values that it was loaded with. `stored`: the checkpoints' type; none: each tensor's own. Throws
  /// E_IN_TRAINING for a model whose training has begun already.
  Parameters(std::shared_ptr<Model>, std::optional<DType> stored);

  const std::shared_ptr<Model>& model() const override { return model_; }
  Tensor flat() const override { return flat_.tensor(); }
  /// Matrices first, which decay; then norms, biases and embeddings, which do not.
  const std::vector<FlatPart>& parts() const override { return parts_; }
  int64_t decaying() const override { return decaying_; }
  const Adapter* adapter() const override { return nullptr; }
  bool stored_rounded() const override { return true; }
  int64_t plan_gradient(Arena&, int64_t rows, int64_t head_rows, BackwardState*) const override;
  std::unique_ptr<GradientSink> gradient(Queue&, const ForwardState&, const BackwardState&, Tensor into) const override;
  void update(Queue&, const std::function<void()>& change) override;

  /// A weight's place in a span of this layout.
  Tensor in(Tensor flat, Weight weight) const { return parts_[at_.at(weight.id)].in(flat); }

  /// Writes model.safetensors into a directory, which must exist.
  void save(const std::string& dir) const;

 private:
  std::shared_ptr<Model> model_;
  std::vector<FlatPart> parts_;
  std::vector<const Parameter*> parameters_;  // of the parts
  std::unordered_map<uint32_t, size_t> at_;   // a weight's part
  std::vector<DType> stored_;                 // of the parts
  int64_t decaying_ = 0;
  FlatSpan flat_;
};

}  // namespace cg
