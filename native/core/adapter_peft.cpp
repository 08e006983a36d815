// PEFT's adapter directory, in and out (peft.LoraConfig, peft.utils.save_and_load).
#include <algorithm>
#include <cmath>
#include <set>

#include "core/adapter.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/safetensors.h"

namespace cg {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) { throw Error("E_ADAPTER", path + ": " + what); }

bool empty(const Json* value) {
  if (!value) return true;
  switch (value->type) {
    case Json::Type::null: return true;
    case Json::Type::boolean: return !value->boolean;
    case Json::Type::array: return value->items.empty();
    case Json::Type::object: return value->members.empty();
    case Json::Type::string: return value->text.empty();
    case Json::Type::number: return value->number() == 0;
  }
  return false;
}

// Settings of LoraConfig that would change what the tensors mean.
void refuse_other_kinds(const std::string& path, const Json& json) {
  const Json* type = json.find("peft_type");
  if (!type || type->text != "LORA") fail(path, "peft_type must be LORA" + (type ? ", not " + json_quote(type->text) : std::string()));
  const Json* bias = json.find("bias");
  if (bias && !empty(bias) && bias->text != "none") fail(path, "bias " + json_quote(bias->text) + " is not supported: \"none\"");
  for (const char* key : {"use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "layers_to_transform", "layer_replication", "exclude_modules",
                          "fan_in_fan_out", "lora_bias", "target_parameters", "trainable_token_indices", "use_qalora", "use_bdlora", "alora_invocation_tokens"})
    if (!empty(json.find(key))) fail(path, std::string(key) + " is not supported: plain LoRA on the seven linears is");
}

void read_targets(const std::string& path, const Json& json, LoraConfig* config) {
  const Json* targets = json.find("target_modules");
  if (targets && targets->is(Json::Type::string) && targets->text == "all-linear") return config->targets.fill(true);
  if (!targets || !targets->is(Json::Type::array) || targets->items.empty()) fail(path, "target_modules must be a list of names");
  for (const Json& target : targets->items) {
    int kind = 0;
    while (kind < linear_kinds && target.text != name_of(static_cast<LinearKind>(kind))) ++kind;
    if (kind == linear_kinds)
      fail(path, "target module " + json_quote(target.text) + " is not supported: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj");
    config->targets[kind] = true;
  }
}

LoraConfig read_lora_config(const std::string& path) {
  const Json json = read_json_file(path, "E_ADAPTER");
  if (!json.is(Json::Type::object)) fail(path, "not a JSON object");
  refuse_other_kinds(path, json);
  LoraConfig config;
  const Json* rank = json.find("r");
  if (!rank || !rank->integer(&config.rank) || config.rank < 1) fail(path, "r must be a positive integer");
  const Json* alpha = json.find("lora_alpha");
  if (!alpha || !alpha->is(Json::Type::number) || !std::isfinite(alpha->number())) fail(path, "lora_alpha must be a number");
  config.alpha = alpha->number();
  const Json* rslora = json.find("use_rslora");
  config.rslora = rslora && rslora->boolean;
  read_targets(path, json, &config);
  return config;
}

std::string words(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t n : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(n);
  }
  return text += ']';
}

// The shortest decimal that reads back as the same double: 16, not 16.000000.
std::string number_text(double x) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  return text;
}

}  // namespace

std::shared_ptr<Adapter> load_adapter(std::shared_ptr<Model> model, const std::string& dir) {
  const LoraConfig config = read_lora_config(dir + "/adapter_config.json");
  const std::string path = dir + "/adapter_model.safetensors";
  if (!file_exists(path)) fail(dir, "no adapter_model.safetensors");
  const auto adapter = std::make_shared<Adapter>(std::move(model), config);
  try {
    const Safetensors file(path);
    std::vector<float> values(static_cast<size_t>(adapter->layout().size()));
    std::set<std::string> expected;
    for (const FlatPart& f : adapter->layout().factors()) {
      expected.insert(f.name);
      const StoredTensor* t = file.find(f.name);
      if (!t) fail(path, "no tensor " + f.name + ": adapter_config.json or the model asks for it");
      if (t->shape != f.shape)
        fail(path, "tensor " + f.name + " has shape " + words(t->shape) + ", this model and rank need " + words(f.shape));
      const std::vector<float> factor = values_as_float(*t);
      std::copy(factor.begin(), factor.end(), values.begin() + f.offset);
    }
    for (const StoredTensor& t : file.tensors())
      if (!expected.contains(t.name)) fail(path, "tensor " + t.name + " has no place in this model and adapter_config.json");
    const auto queue = adapter->model()->backend->queue();
    adapter->upload(*queue, values);
  } catch (const Error& error) {
    throw Error(error.code() == "E_CHECKPOINT" ? "E_ADAPTER" : error.code(), error.what());
  }
  return adapter;
}

void save_adapter(const Adapter& adapter, const std::string& dir) {
  const auto queue = adapter.model()->backend->queue();
  const std::vector<float> values = adapter.download(*queue);
  std::vector<NamedTensor> tensors;
  for (const FlatPart& f : adapter.layout().factors()) tensors.push_back({f.name, f.shape, values.data() + f.offset});
  write_safetensors(dir + "/adapter_model.safetensors", tensors, {{"format", "pt"}});

  const LoraConfig& c = adapter.config();
  std::string targets;
  for (int k = 0; k < linear_kinds; ++k)
    if (c.targets[k]) targets += (targets.empty() ? "" : ", ") + json_quote(name_of(static_cast<LinearKind>(k)));
  const std::string json =
      "{\n  \"base_model_name_or_path\": null,\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": false,\n  \"inference_mode\": true,\n  \"init_lora_weights\": "
      "true,\n"
      "  \"lora_alpha\": " +
      number_text(c.alpha) + ",\n  \"lora_dropout\": 0.0,\n  \"modules_to_save\": null,\n  \"peft_type\": \"LORA\",\n  \"r\": " + std::to_string(c.rank) +
      ",\n  \"target_modules\": [" + targets +
      "],\n  \"task_type\": \"CAUSAL_LM\",\n  \"use_dora\": false,\n  \"use_rslora\": " + (c.rslora ? "true" : "false") + "\n}\n";
  write_file_atomic(dir + "/adapter_config.json", json);
}

}  // namespace cg
