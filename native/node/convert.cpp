#include "node/convert.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace cg::node {
namespace {

[[noreturn]] void fail(const char* key, const char* expected) { throw Error("E_SHAPE", std::string(key) + " must be " + expected); }

template <class T, class A>
std::vector<T> elements(const Napi::Object& o, const char* key, napi_typedarray_type type, const char* expected) {
  if (!present(o, key)) return {};
  const Napi::Value value = o.Get(key);
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) fail(key, expected);
  const A list = value.As<A>();
  return std::vector<T>(list.Data(), list.Data() + list.ElementLength());
}

template <class A, class T>
A js_elements(Napi::Env env, const std::vector<T>& values) {
  A list = A::New(env, values.size());
  std::copy(values.begin(), values.end(), list.Data());
  return list;
}

}  // namespace

bool present(const Napi::Object& o, const char* key) {
  const Napi::Value value = o.Get(key);
  return !value.IsUndefined() && !value.IsNull();
}

double number(const Napi::Object& o, const char* key) {
  const Napi::Value value = o.Get(key);
  if (!value.IsNumber()) fail(key, "a number");
  return value.As<Napi::Number>().DoubleValue();
}

double number_or(const Napi::Object& o, const char* key, double fallback) { return present(o, key) ? number(o, key) : fallback; }

bool flag(const Napi::Object& o, const char* key) {
  if (!present(o, key)) return false;
  const Napi::Value value = o.Get(key);
  if (!value.IsBoolean()) fail(key, "true or false");
  return value.As<Napi::Boolean>();
}

std::string text(const Napi::Object& o, const char* key) {
  const Napi::Value value = o.Get(key);
  if (!value.IsString()) fail(key, "a string");
  return value.As<Napi::String>();
}

std::string text_or(const Napi::Object& o, const char* key, const char* fallback) { return present(o, key) ? text(o, key) : fallback; }

uint64_t big(const Napi::Object& o, const char* key) {
  const Napi::Value value = o.Get(key);
  if (!value.IsBigInt()) fail(key, "a BigInt");
  bool lossless;
  return value.As<Napi::BigInt>().Uint64Value(&lossless);
}

Napi::Object object(const Napi::Object& o, const char* key) {
  const Napi::Value value = o.Get(key);
  if (!value.IsObject()) fail(key, "an object");
  return value.As<Napi::Object>();
}

Napi::Array array(const Napi::Object& o, const char* key) {
  const Napi::Value value = o.Get(key);
  if (!value.IsArray()) fail(key, "an array");
  return value.As<Napi::Array>();
}

std::vector<int32_t> int32s(const Napi::Object& o, const char* key) { return elements<int32_t, Napi::Int32Array>(o, key, napi_int32_array, "an Int32Array"); }
std::vector<float> floats(const Napi::Object& o, const char* key) { return elements<float, Napi::Float32Array>(o, key, napi_float32_array, "a Float32Array"); }
std::vector<double> doubles(const Napi::Object& o, const char* key) {
  return elements<double, Napi::Float64Array>(o, key, napi_float64_array, "a Float64Array");
}

Napi::Int32Array js_int32s(Napi::Env env, const std::vector<int32_t>& values) { return js_elements<Napi::Int32Array>(env, values); }
Napi::Float32Array js_floats(Napi::Env env, const std::vector<float>& values) { return js_elements<Napi::Float32Array>(env, values); }
Napi::Float64Array js_doubles(Napi::Env env, const std::vector<double>& values) { return js_elements<Napi::Float64Array>(env, values); }

DType stored_dtype(const Napi::Object& o, const char* key) {
  const std::string name = text(o, key);
  if (name == "fp32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  if (name == "fp16") return DType::f16;
  fail(key, "fp32, bf16 or fp16");
}

LoraConfig lora_config(const Napi::Object& o) {
  LoraConfig config;
  const double rank = number(o, "rank");
  if (!(rank >= 1 && rank <= 4096) || rank != std::floor(rank)) fail("rank", "a positive integer (at most 4096)");
  config.rank = static_cast<int64_t>(rank);
  config.alpha = number(o, "alpha");
  if (!std::isfinite(config.alpha)) fail("alpha", "a finite number");
  config.rslora = flag(o, "rslora");
  const Napi::Array targets = array(o, "targets");
  for (uint32_t i = 0; i < targets.Length(); ++i) {
    const std::string target = targets.Get(i).ToString();
    int kind = 0;
    while (kind < linear_kinds && target != name_of(static_cast<LinearKind>(kind))) ++kind;
    if (kind == linear_kinds) throw Error("E_ADAPTER", "target " + target + " is none of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj");
    config.targets[kind] = true;
  }
  if (targets.Length() == 0) throw Error("E_ADAPTER", "targets must name at least one linear");
  return config;
}

Napi::Object js_lora_config(Napi::Env env, const LoraConfig& config) {
  Napi::Object o = Napi::Object::New(env);
  Napi::Array targets = Napi::Array::New(env);
  for (int k = 0; k < linear_kinds; ++k)
    if (config.targets[k]) targets.Set(targets.Length(), Napi::String::New(env, name_of(static_cast<LinearKind>(k))));
  o.Set("rank", Napi::Number::New(env, static_cast<double>(config.rank)));
  o.Set("alpha", Napi::Number::New(env, config.alpha));
  o.Set("targets", targets);
  o.Set("rslora", Napi::Boolean::New(env, config.rslora));
  return o;
}

SampleParams sample_params(const Napi::Object& o) {
  SampleParams p;
  p.temperature = static_cast<float>(number(o, "temperature"));
  p.top_k = static_cast<float>(number(o, "topK"));
  p.top_p = static_cast<float>(number(o, "topP"));
  p.min_p = static_cast<float>(number(o, "minP"));
  p.repetition_penalty = static_cast<float>(number(o, "repetitionPenalty"));
  return p;
}

OptimizerOptions optimizer_options(const Napi::Object& o) { return {number(o, "beta1"), number(o, "beta2"), number(o, "eps"), number(o, "weightDecay")}; }

Sequence sequence(const Napi::Object& o) {
  Sequence s;
  s.ids = int32s(o, "ids");
  s.start = static_cast<int64_t>(number_or(o, "start", 0));
  const std::vector<int32_t> spans = int32s(o, "spans");
  if (spans.size() % 2 != 0) fail("spans", "pairs [begin, end)");
  for (size_t i = 0; i < spans.size(); i += 2) s.spans.emplace_back(spans[i], spans[i + 1]);
  s.temperature = static_cast<float>(number(o, "temperature"));
  return s;
}

PolicyLoss policy_loss_options(const Napi::Object& o) {
  static constexpr const char* names[] = {"grpo", "bnpo", "dr_grpo", "dapo", "gspo", "cispo"};
  PolicyLoss loss;
  const std::string name = text(o, "aggregation");
  int kind = 0;
  while (kind < 6 && name != names[kind]) ++kind;
  if (kind == 6) fail("aggregation", "one of grpo, bnpo, dr_grpo, dapo, gspo, cispo");
  loss.aggregation = static_cast<Aggregation>(kind);
  loss.epsilon_low = number(o, "epsilonLow");
  loss.epsilon_high = number(o, "epsilonHigh");
  loss.cispo_cap = number(o, "cispoCap");
  loss.kl = number(o, "kl");
  loss.kl_bias_correction = flag(o, "klBiasCorrection");
  loss.max_completion_length = number(o, "maxCompletionLength");
  return loss;
}

Denominators denominators(const Napi::Object& o) { return {number(o, "rollouts"), number(o, "tokens")}; }

StepRequest step_request(const Napi::Object& o) {
  StepRequest request;
  const Napi::Array groups = array(o, "groups");
  for (uint32_t g = 0; g < groups.Length(); ++g) {
    const Napi::Object group = groups.Get(g).As<Napi::Object>();
    TrainGroup& to = request.groups.emplace_back();
    to.index = static_cast<int64_t>(number(group, "index"));
    const Napi::Array sequences = array(group, "sequences");
    for (uint32_t i = 0; i < sequences.Length(); ++i) {
      const Napi::Object s = sequences.Get(i).As<Napi::Object>();
      to.sequences.push_back({sequence(s), floats(s, "old"), floats(s, "ref"), floats(s, "advantages"), floats(s, "weights")});
    }
  }
  const Napi::Object loss = object(o, "loss");
  const std::string kind = text(loss, "kind");
  if (kind != "policy" && kind != "weighted") fail("loss.kind", "\"weighted\" or \"policy\"");
  request.policy = kind == "policy";
  if (request.policy) request.loss = policy_loss_options(loss);
  request.denominators = denominators(object(o, "denominators"));
  request.lr = number_or(o, "lr", 0);
  request.clip = number_or(o, "clip", 0);
  request.max_rows = static_cast<int64_t>(std::min(number(o, "maxRowsPerPass"), static_cast<double>(std::numeric_limits<int32_t>::max())));
  request.memory_budget = static_cast<int64_t>(std::min(number_or(o, "memoryBudget", 0x1p52), 0x1p52));
  return request;
}

Napi::Object js_step_stats(Napi::Env env, const StepStats& s) {
  const auto put = [&](Napi::Object& o, const char* key, double value) { o.Set(key, Napi::Number::New(env, value)); };
  Napi::Object o = Napi::Object::New(env);
  put(o, "loss", s.loss);
  put(o, "kl", s.kl);
  put(o, "entropy", s.entropy);
  put(o, "clipFraction", s.clip_fraction);
  put(o, "gradNorm", s.grad_norm);
  put(o, "tokens", static_cast<double>(s.tokens));
  put(o, "uniqueTokens", static_cast<double>(s.unique_tokens));
  put(o, "lossTokens", static_cast<double>(s.loss_tokens));
  Napi::Object mismatch = Napi::Object::New(env);
  put(mismatch, "kl", s.mismatch_kl);
  put(mismatch, "multProbError", s.mult_prob_error);
  put(mismatch, "max", s.mismatch_max);
  o.Set("mismatch", mismatch);
  o.Set("skipped", Napi::Boolean::New(env, s.skipped));
  put(o, "passBytes", static_cast<double>(s.pass_bytes));
  o.Set("kept", Napi::String::New(env, name_of(s.kept)));
  return o;
}

}  // namespace cg::node
