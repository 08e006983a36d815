// A LoRA adapter: for a linear y = W x it adds scale · B (A x), A [r, in], B [out, r] in fp32, scale = alpha / r (alpha / √r with rslora).
//
// All factors of all layers are one flat span, so that norm, AdamW and reduction are one op each: layer by layer, linears in LinearKind order, A before B.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/model.h"
#include "core/trainee.h"

namespace cg {

struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;
  bool rslora = false;
  std::array<bool, linear_kinds> targets{};

  float scale() const;
};

class AdapterLayout {
 public:
  AdapterLayout(const Model&, const LoraConfig&);

  int64_t size() const { return size_; }  // elements
  const std::vector<FlatPart>& factors() const { return factors_; }
  /// Views of A and B in a flat span; without a buffer when the linear is not adapted.
  Tensor a(Tensor flat, int64_t layer, LinearKind kind) const { return view(flat, layer, kind, 0); }
  Tensor b(Tensor flat, int64_t layer, LinearKind kind) const { return view(flat, layer, kind, 1); }

 private:
  Tensor view(Tensor flat, int64_t layer, LinearKind, int which) const;

  std::vector<FlatPart> factors_;  // named as PEFT does: base_model.model.model.layers.N.self_attn.q_proj.lora_A.weight
  std::vector<std::array<int, linear_kinds>> first_;  // [layer][kind] index of A in factors_, −1 when not adapted
  int64_t size_ = 0;
};

class Adapter final : public Trainee {
 public:
  Adapter(std::shared_ptr<Model>, const LoraConfig&);

  const std::shared_ptr<Model>& model() const override { return model_; }
  const LoraConfig& config() const { return config_; }
  const AdapterLayout& layout() const { return layout_; }
  Tensor flat() const override { return flat_.tensor(); }
  const std::vector<FlatPart>& parts() const override { return layout_.factors(); }
  int64_t decaying() const override { return layout_.size(); }
  const Adapter* adapter() const override { return this; }
  bool stored_rounded() const override { return false; }
  int64_t plan_gradient(Arena&, int64_t rows, int64_t head_rows, BackwardState*) const override;
  std::unique_ptr<GradientSink> gradient(Queue&, const ForwardState&, const BackwardState&, Tensor into) const override;
  void update(Queue&, const std::function<void()>& change) override;

  void upload(Queue&, const std::vector<float>& values);

  /// Distinguishes adapters for as long as the process lives.
  const uint64_t id;
  /// Odd while the tensors change, then the next even number: keys and values cached under another version are stale.
  std::atomic<uint64_t> version{0};

 private:
  std::shared_ptr<Model> model_;
  LoraConfig config_;
  AdapterLayout layout_;
  FlatSpan flat_;
};

/// A fresh adapter as PEFT starts one: A uniform in ±1/√in (Kaiming, a = √5), drawn from (seed, factor, element), B zero.
std::shared_ptr<Adapter> new_adapter(std::shared_ptr<Model>, const LoraConfig&, uint64_t seed);

/// A copy with tensors of its own.
std::shared_ptr<Adapter> copy_adapter(const Adapter&);

/// Reads a PEFT directory (adapter_config.json, adapter_model.safetensors). Throws cg::Error{"E_ADAPTER"} when it is another kind of adapter, or its tensors do
/// not fit the model: the message names the tensor and both shapes.
std::shared_ptr<Adapter> load_adapter(std::shared_ptr<Model>, const std::string& dir);

/// Writes a PEFT directory's two files into `dir`, which must exist.
void save_adapter(const Adapter&, const std::string& dir);

}  // namespace cg
