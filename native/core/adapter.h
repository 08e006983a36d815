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

namespace cg {

struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;
  bool rslora = false;
  std::array<bool, linear_kinds> targets{};

  float scale() const;
};

/// Where one factor stands in the flat span.
struct Factor {
  std::string name;  // as PEFT writes it: base_model.model.model.layers.N.self_attn.q_proj.lora_A.weight
  int64_t offset;    // elements
  int64_t rows, columns;
};

class AdapterLayout {
 public:
  AdapterLayout(const Model&, const LoraConfig&);

  int64_t size() const { return size_; }  // elements
  const std::vector<Factor>& factors() const { return factors_; }
  /// Views of A and B in a flat span; without a buffer when the linear is not adapted.
  Tensor a(Tensor flat, int64_t layer, LinearKind kind) const { return view(flat, layer, kind, 0); }
  Tensor b(Tensor flat, int64_t layer, LinearKind kind) const { return view(flat, layer, kind, 1); }

 private:
  Tensor view(Tensor flat, int64_t layer, LinearKind, int which) const;

  std::vector<Factor> factors_;
  std::vector<std::array<int, linear_kinds>> first_;  // [layer][kind] index of A in factors_, −1 when not adapted
  int64_t size_ = 0;
};

/// A flat fp32 tensor of `size` elements in its own buffer.
class FlatSpan {
 public:
  FlatSpan(Backend&, int64_t size);
  ~FlatSpan() { backend_.release(tensor_.buffer); }
  FlatSpan(const FlatSpan&) = delete;
  FlatSpan& operator=(const FlatSpan&) = delete;
  Tensor tensor() const { return tensor_; }

 private:
  Backend& backend_;
  Tensor tensor_;
};

class Adapter {
 public:
  Adapter(std::shared_ptr<Model>, const LoraConfig&);

  const std::shared_ptr<Model>& model() const { return model_; }
  const LoraConfig& config() const { return config_; }
  const AdapterLayout& layout() const { return layout_; }
  Tensor flat() const { return flat_.tensor(); }

  std::vector<float> download(Queue&) const;
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
