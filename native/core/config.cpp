#include "core/config.h"

#include <cmath>

#include "core/error.h"
#include "core/json.h"

namespace cg {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), json_(read_json_file(path, "E_CHECKPOINT")) {
    if (!json_.is(Json::Type::object)) fail("not a JSON object");
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error("E_CHECKPOINT", path_ + ": " + what); }

  /// The member of that name; null counts as absent.
  const Json* find(const char* key) const { return find_in(json_, key); }
  static const Json* find_in(const Json& object, const char* key) {
    const Json* value = object.find(key);
    return value && !value->is(Json::Type::null) ? value : nullptr;
  }

  int64_t count(const char* key, int64_t fallback = 0) const {
    const Json* value = find(key);
    if (!value && fallback > 0) return fallback;
    int64_t n = 0;
    if (!value || !value->integer(&n) || n <= 0 || n > 1'000'000'000) fail(std::string(key) + " must be a positive integer");
    return n;
  }

  double positive(const Json& object, const char* key, double fallback = 0) const {
    const Json* value = find_in(object, key);
    if (!value && fallback > 0) return fallback;
    const double x = value && value->is(Json::Type::number) ? value->number() : 0;
    if (!(x > 0) || !std::isfinite(x)) fail(std::string(key) + " must be a positive number");
    return x;
  }

  bool flag(const char* key, bool fallback = false) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is(Json::Type::boolean)) fail(std::string(key) + " must be true or false");
    return value->boolean;
  }

  std::string word(const Json& object, const char* key, const std::string& fallback) const {
    const Json* value = find_in(object, key);
    if (!value) return fallback;
    if (!value->is(Json::Type::string)) fail(std::string(key) + " must be a string");
    return value->text;
  }

  const Json& top() const { return json_; }

 private:
  std::string path_;
  Json json_;
};

Architecture read_architecture(const Reader& r) {
  const std::string type = r.word(r.top(), "model_type", "");
  if (type == "qwen3") return Architecture::qwen3;
  if (type == "qwen2") return Architecture::qwen2;
  if (type == "llama") return Architecture::llama;
  r.fail("model_type " + json_quote(type) + " is not supported: qwen3, qwen2 or llama");
}

// Of weights that are yet to be made; a checkpoint's own tensors say theirs.
DType read_dtype(const Reader& r) {
  const std::string name = r.word(r.top(), "dtype", r.word(r.top(), "torch_dtype", "float32"));
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16") return DType::f16;
  return DType::f32;
}

RopeConfig read_rope(const Reader& r, int64_t max_positions) {
  RopeConfig rope;
  const Json* scaling = r.find("rope_scaling");
  if (const Json* parameters = r.find("rope_parameters")) {
    scaling = parameters;
    if (!parameters->is(Json::Type::object)) r.fail("rope_parameters must be an object");
    rope.theta = r.positive(*parameters, "rope_theta", r.find("rope_theta") ? r.positive(r.top(), "rope_theta") : rope.theta);
  } else {
    rope.theta = r.positive(r.top(), "rope_theta", rope.theta);
  }
  if (!scaling) return rope;
  if (!scaling->is(Json::Type::object)) r.fail("rope_scaling must be an object or null");
  const std::string type = r.word(*scaling, "rope_type", r.word(*scaling, "type", "default"));
  if (r.positive(*scaling, "partial_rotary_factor", 1) != 1) r.fail("partial_rotary_factor is not supported");
  if (type == "default") return rope;
  if (type != "llama3")
    r.fail("rope scaling " + json_quote(type) + " is not supported (default and llama3 are); without it positions would be rotated wrongly");
  rope.llama3 = true;
  rope.factor = r.positive(*scaling, "factor");
  rope.low_freq_factor = r.positive(*scaling, "low_freq_factor");
  rope.high_freq_factor = r.positive(*scaling, "high_freq_factor");
  rope.original_positions = r.positive(*scaling, "original_max_position_embeddings", static_cast<double>(max_positions));
  if (rope.high_freq_factor <= rope.low_freq_factor) r.fail("high_freq_factor must be above low_freq_factor");
  return rope;
}

// Settings that change the arithmetic in ways this engine does not follow.
void refuse_other_arithmetic(const Reader& r, int64_t max_positions) {
  if (r.find("quantization_config")) r.fail("quantised weights are not supported: use the bf16, fp16 or fp32 checkpoint");
  const std::string act = r.word(r.top(), "hidden_act", "silu");
  if (act != "silu") r.fail("hidden_act " + json_quote(act) + " is not supported: silu");
  if (r.positive(r.top(), "partial_rotary_factor", 1) != 1) r.fail("partial_rotary_factor is not supported");
  if (r.flag("use_sliding_window") && r.find("sliding_window") && r.count("sliding_window") < max_positions)
    r.fail("sliding-window attention is not supported");
  if (const Json* types = r.find("layer_types"))
    for (const Json& type : types->items)
      if (type.text != "full_attention") r.fail("layer type " + json_quote(type.text) + " is not supported: full_attention");
}

}  // namespace

const char* name_of(Architecture a) {
  switch (a) {
    case Architecture::qwen3: return "qwen3";
    case Architecture::qwen2: return "qwen2";
    case Architecture::llama: return "llama";
  }
  return "";
}

ModelConfig read_config(const std::string& path) {
  const Reader r(path);
  ModelConfig c;
  c.architecture = read_architecture(r);
  c.layers = r.count("num_hidden_layers");
  c.hidden = r.count("hidden_size");
  c.heads = r.count("num_attention_heads");
  c.kv_heads = r.count("num_key_value_heads", c.heads);
  if (c.heads % c.kv_heads != 0) r.fail("num_attention_heads must be a multiple of num_key_value_heads");
  if (!r.find("head_dim") && c.hidden % c.heads != 0) r.fail("hidden_size is no multiple of num_attention_heads and there is no head_dim");
  c.head_dim = r.count("head_dim", c.hidden / c.heads);
  if (c.head_dim % 2 != 0) r.fail("head_dim must be even: rotary pairs are (j, j + head_dim/2)");
  c.intermediate = r.count("intermediate_size");
  c.vocab = r.count("vocab_size");
  c.max_positions = r.count("max_position_embeddings", 2048);
  c.eps = static_cast<float>(r.positive(r.top(), "rms_norm_eps", 1e-6));
  c.rope = read_rope(r, c.max_positions);
  c.tied = r.flag("tie_word_embeddings");
  c.qk_norm = c.architecture == Architecture::qwen3;
  c.qkv_bias = c.architecture == Architecture::qwen2 || r.flag("attention_bias");
  c.o_bias = c.architecture != Architecture::qwen2 && r.flag("attention_bias");
  c.mlp_bias = c.architecture == Architecture::llama && r.flag("mlp_bias");
  c.dtype = read_dtype(r);
  c.initializer_range = r.positive(r.top(), "initializer_range", c.initializer_range);
  refuse_other_arithmetic(r, c.max_positions);
  return c;
}

}  // namespace cg
