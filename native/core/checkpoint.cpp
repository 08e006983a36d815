// From a checkpoint directory to a Model.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/build_model.h"
#include "core/error.h"
#include "core/json.h"
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
class Checkpoint final : public TensorSource {
 public:
  explicit Checkpoint(const std::string& dir) : dir_(dir) {
    const std::string index = dir + "/model.safetensors.index.json", single = dir + "/model.safetensors";
    if (file_exists(index)) open_shards(index);
    else if (file_exists(single)) open(single);
    else throw Error("E_CHECKPOINT", dir + ": neither model.safetensors nor model.safetensors.index.json is there");
  }

  const void* values(Parameter* parameter, size_t) override {
    const StoredTensor& tensor = fitting(parameter->name, parameter->shape);
    parameter->dtype = dtype_of(tensor, tensors_.at(parameter->name).second);
    return tensor.data;
  }

  /// The tensor of a name, once its shape is as expected.
  const StoredTensor& fitting(const std::string& name, const Shape& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw Error("E_CHECKPOINT", dir_ + ": no tensor " + name + " in the checkpoint");
    const auto& [tensor, path] = found->second;
    if (tensor->shape != shape)
      throw Error("E_CHECKPOINT", path + ": tensor " + name + " has shape " + words(tensor->shape) + ", config.json asks for " + words(shape));
    used_.insert(name);
    return *tensor;
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

}  // namespace

std::shared_ptr<Model> load_model(const std::string& dir, std::unique_ptr<Backend> backend, int64_t real_vocab) {
  if (!std::filesystem::is_directory(dir)) throw Error("E_CHECKPOINT", dir + ": no such directory");
  const ModelConfig config = read_config(dir + "/config.json");
  Checkpoint checkpoint(dir);
  const auto model = build_model(config, dir, std::move(backend), real_vocab, checkpoint);
  checkpoint.check_nothing_left(config.tied);
  model->first_values = [dir, parameters = model->parameters] {
    Checkpoint again(dir);
    std::vector<float> all;
    for (const Parameter& p : parameters) {
      const std::vector<float> values = values_as_float(again.fitting(p.name, p.shape));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  return model;
}

}  // namespace cg
