// From a checkpoint directory to a Model.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "core/model.h"
#include "core/safetensors.h"

namespace cg {
namespace {

using Shape = std::vector<int64_t>;

std::string words(const Shape& shape) {
  std::string text = "[";
  for (const int64_t n : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(n);
  }
  return text += ']';
}

DType dtype_of(const StoredTensor& t, const std::string& path) {
  if (t.dtype == "F32") return DType::f32;
  if (t.dtype == "BF16") return DType::bf16;
  if (t.dtype == "F16") return DType::f16;
  throw Error("E_CHECKPOINT", path + ": tensor " + t.name + " has dtype " + t.dtype + ": weights must be F32, F16 or BF16");
}

/// The tensors of all files of a directory by name.
class Checkpoint {
 public:
  explicit Checkpoint(const std::string& dir) : dir_(dir) {
    const std::string index = dir + "/model.safetensors.index.json", single = dir + "/model.safetensors";
    if (file_exists(index)) open_shards(index);
    else if (file_exists(single)) open(single);
    else throw Error("E_CHECKPOINT", dir + ": neither model.safetensors nor model.safetensors.index.json is there");
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }

  /// Gives a tensor to the backend once its shape is as expected.
  Weight load(Backend& backend, const std::string& name, const Shape& shape, int64_t* parameters) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw Error("E_CHECKPOINT", dir_ + ": no tensor " + name + " in the checkpoint");
    const auto& [tensor, path] = found->second;
    if (tensor->shape != shape)
      throw Error("E_CHECKPOINT", path + ": tensor " + name + " has shape " + words(tensor->shape) + ", config.json asks for " + words(shape));
    used_.insert(name);
    *parameters += tensor->size();
    return backend.load_weight(name, tensor->data, dtype_of(*tensor, path), shape);
  }

  /// A tensor inside the model that nothing used (a bias the config does not mention, say) would change the numbers: refuse it.
  void check_nothing_left(bool tied) const {
    for (const auto& [name, where] : tensors_) {
      if (used_.contains(name) || (tied && name == "lm_head.weight") || name.ends_with(".rotary_emb.inv_freq")) continue;
      throw Error("E_CHECKPOINT", where.second + ": tensor " + name + " has no place in the model that config.json describes");
    }
  }

 private:
  void open(const std::string& path) {
    files_.push_back(std::make_unique<Safetensors>(path));
    for (const StoredTensor& t : files_.back()->tensors())
      if (!tensors_.emplace(t.name, std::pair(&t, path)).second) throw Error("E_CHECKPOINT", path + ": tensor " + t.name + " is in two shards");
  }

  void open_shards(const std::string& index) {
    const Json json = read_json_file(index, "E_CHECKPOINT");
    const Json* map = json.find("weight_map");
    if (!map || !map->is(Json::Type::object)) throw Error("E_CHECKPOINT", index + ": no weight_map");
    std::set<std::string> names;
    for (const auto& [tensor, file] : map->members) {
      if (!file.is(Json::Type::string) || file.text.find('/') != std::string::npos)
        throw Error("E_CHECKPOINT", index + ": weight_map." + json_quote(tensor) + " is not a file name");
      names.insert(file.text);
    }
    for (const std::string& name : names) open(dir_ + "/" + name);
    for (const auto& [tensor, file] : map->members) {
      const auto found = tensors_.find(tensor);
      if (found == tensors_.end() || found->second.second != dir_ + "/" + file.text)
        throw Error("E_CHECKPOINT", index + ": tensor " + tensor + " is not in " + file.text);
    }
  }

  std::string dir_;
  std::vector<std::unique_ptr<Safetensors>> files_;
  std::map<std::string, std::pair<const StoredTensor*, std::string>> tensors_;
  std::set<std::string> used_;
};

void load_layer(Model& model, Checkpoint& checkpoint, int64_t index) {
  const ModelConfig& c = model.config;
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  const auto load = [&](const std::string& name, const Shape& shape) { return checkpoint.load(*model.backend, prefix + name, shape, &model.parameters); };
  const int64_t out[linear_kinds] = {c.q_size(), c.kv_size(), c.kv_size(), c.hidden, c.intermediate, c.intermediate, c.hidden};
  const int64_t in[linear_kinds] = {c.hidden, c.hidden, c.hidden, c.q_size(), c.hidden, c.hidden, c.intermediate};
  const bool bias[linear_kinds] = {c.qkv_bias, c.qkv_bias, c.qkv_bias, c.o_bias, c.mlp_bias, c.mlp_bias, c.mlp_bias};

  Layer layer;
  for (int k = 0; k < linear_kinds; ++k) {
    const std::string path = path_of(static_cast<LinearKind>(k));
    layer.linears[k] = {load(path + ".weight", {out[k], in[k]}), bias[k] ? load(path + ".bias", {out[k]}) : Weight{}, in[k], out[k]};
  }
  layer.input_norm = load("input_layernorm.weight", {c.hidden});
  layer.post_norm = load("post_attention_layernorm.weight", {c.hidden});
  if (c.qk_norm) {
    layer.q_norm = load("self_attn.q_norm.weight", {c.head_dim});
    layer.k_norm = load("self_attn.k_norm.weight", {c.head_dim});
  }
  model.layers.push_back(layer);
}

}  // namespace

std::shared_ptr<Model> load_model(const std::string& dir, std::unique_ptr<Backend> backend, int64_t real_vocab) {
  const auto model = std::make_shared<Model>();
  model->backend = std::move(backend);
  model->name = std::filesystem::path(dir).lexically_normal().filename().string();
  if (model->name.empty()) model->name = std::filesystem::path(dir).lexically_normal().parent_path().filename().string();
  if (!std::filesystem::is_directory(dir)) throw Error("E_CHECKPOINT", dir + ": no such directory");
  model->config = read_config(dir + "/config.json");
  const ModelConfig& c = model->config;
  model->real_vocab = real_vocab == 0 ? c.vocab : real_vocab;
  if (model->real_vocab < 1 || model->real_vocab > c.vocab)
    throw Error("E_VOCABULARY",
                dir + ": a vocabulary of " + std::to_string(model->real_vocab) + " does not fit the embedding's " + std::to_string(c.vocab) + " rows");

  Checkpoint checkpoint(dir);
  const auto load = [&](const std::string& name, const Shape& shape) { return checkpoint.load(*model->backend, name, shape, &model->parameters); };
  model->embedding = load("model.embed_tokens.weight", {c.vocab, c.hidden});
  for (int64_t i = 0; i < c.layers; ++i) load_layer(*model, checkpoint, i);
  model->final_norm = load("model.norm.weight", {c.hidden});
  model->head = c.tied ? model->embedding : load("lm_head.weight", {c.vocab, c.hidden});
  checkpoint.check_nothing_left(c.tied);
  return model;
}

}  // namespace cg
