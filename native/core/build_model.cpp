#include "core/build_model.h"

#include <filesystem>

#include "core/error.h"

namespace cg {
namespace {

using Shape = std::vector<int64_t>;

class Builder {
 public:
  Builder(Model& model, TensorSource& source) : model_(model), source_(source) {}

  Weight load(const std::string& name, const Shape& shape, ParameterKind kind) {
    Parameter parameter{name, shape, kind, DType::f32, {}};
    const void* values = source_.values(&parameter, model_.parameters.size());
    parameter.weight = model_.backend->load_weight(name, values, parameter.dtype, shape);
    model_.parameters.push_back(parameter);
    return parameter.weight;
  }

  void load_layer(int64_t index) {
    const ModelConfig& c = model_.config;
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    const auto norm = [&](const char* name, int64_t n) { return load(prefix + name, {n}, ParameterKind::norm); };
    const int64_t out[linear_kinds] = {c.q_size(), c.kv_size(), c.kv_size(), c.hidden, c.intermediate, c.intermediate, c.hidden};
    const int64_t in[linear_kinds] = {c.hidden, c.hidden, c.hidden, c.q_size(), c.hidden, c.hidden, c.intermediate};
    const bool bias[linear_kinds] = {c.qkv_bias, c.qkv_bias, c.qkv_bias, c.o_bias, c.mlp_bias, c.mlp_bias, c.mlp_bias};

    Layer layer;
    for (int k = 0; k < linear_kinds; ++k) {
      const std::string path = prefix + path_of(static_cast<LinearKind>(k));
      const Weight weight = load(path + ".weight", {out[k], in[k]}, ParameterKind::matrix);
      layer.linears[k] = {weight, bias[k] ? load(path + ".bias", {out[k]}, ParameterKind::bias) : Weight{}, in[k], out[k]};
    }
    layer.input_norm = norm("input_layernorm.weight", c.hidden);
    layer.post_norm = norm("post_attention_layernorm.weight", c.hidden);
    if (c.qk_norm) {
      layer.q_norm = norm("self_attn.q_norm.weight", c.head_dim);
      layer.k_norm = norm("self_attn.k_norm.weight", c.head_dim);
    }
    model_.layers.push_back(layer);
  }

 private:
  Model& model_;
  TensorSource& source_;
};

}  // namespace

std::shared_ptr<Model> build_model(const ModelConfig& config, const std::string& where, std::unique_ptr<Backend> backend, int64_t real_vocab,
                                   TensorSource& source) {
  const auto model = std::make_shared<Model>();
  model->backend = std::move(backend);
  model->config = config;
  model->name = std::filesystem::path(where).lexically_normal().filename().string();
  if (model->name.empty()) model->name = std::filesystem::path(where).lexically_normal().parent_path().filename().string();
  const ModelConfig& c = model->config;
  model->real_vocab = real_vocab == 0 ? c.vocab : real_vocab;
  if (model->real_vocab < 1 || model->real_vocab > c.vocab)
    throw Error("E_VOCABULARY",
                where + ": a vocabulary of " + std::to_string(model->real_vocab) + " does not fit the embedding's " + std::to_string(c.vocab) + " rows");
  Builder builder(*model, source);
  model->embedding = builder.load("model.embed_tokens.weight", {c.vocab, c.hidden}, ParameterKind::embedding);
  for (int64_t i = 0; i < c.layers; ++i) builder.load_layer(i);
  model->final_norm = builder.load("model.norm.weight", {c.hidden}, ParameterKind::norm);
  model->head = c.tied ? model->embedding : builder.load("lm_head.weight", {c.vocab, c.hidden}, ParameterKind::matrix);
  return model;
}

}  // namespace cg
