#include "core/score.h"
#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {
namespace {

std::vector<Sequence> sequences_of(const Napi::Object& request) {
  std::vector<Sequence> sequences;
  const Napi::Array list = array(request, "sequences");
  for (uint32_t i = 0; i < list.Length(); ++i) sequences.push_back(sequence(list.Get(i).As<Napi::Object>()));
  return sequences;
}

struct Scores {
  std::vector<float> logp, entropy;
};

}  // namespace

Napi::Function ModelObject::define(Napi::Env env) {
  return DefineClass(env, "Model",
                     {InstanceAccessor<&ModelObject::info>("info"), InstanceMethod<&ModelObject::new_adapter>("newAdapter"),
                      InstanceMethod<&ModelObject::load_adapter>("loadAdapter"), InstanceMethod<&ModelObject::weights>("weights"),
                      InstanceMethod<&ModelObject::sampler>("sampler"),
                      InstanceMethod<&ModelObject::trainer>("trainer"), InstanceMethod<&ModelObject::score>("score"),
                      InstanceMethod<&ModelObject::last_logits>("lastLogits"), InstanceMethod<&ModelObject::dispose>("dispose")});
}

Napi::Object ModelObject::make(Napi::Env env, std::shared_ptr<Model> model) {
  const Napi::Object object = classes(env).model.New({});
  Unwrap(object)->model_ = std::move(model);
  return object;
}

std::shared_ptr<Model> ModelObject::model() {
  if (!model_) throw Error("E_DISPOSED", "the model has been disposed of");
  return model_;
}

Napi::Value ModelObject::info(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const Napi::Env env = call.Env();
    const auto m = model();
    const ModelConfig& c = m->config;
    Napi::Object o = Napi::Object::New(env);
    const auto put = [&](const char* key, int64_t value) { o.Set(key, Napi::Number::New(env, static_cast<double>(value))); };
    o.Set("architecture", Napi::String::New(env, name_of(c.architecture)));
    put("layers", c.layers);
    put("hidden", c.hidden);
    put("heads", c.heads);
    put("kvHeads", c.kv_heads);
    put("headDim", c.head_dim);
    put("intermediate", c.intermediate);
    put("vocab", c.vocab);
    put("realVocab", m->real_vocab);
    put("maxPositions", c.max_positions);
    o.Set("tied", Napi::Boolean::New(env, c.tied));
    put("parameters", m->parameter_count());
    o.Set("logprobKind", Napi::String::New(env, m->backend->logprob_kind()));
    o.Set("device", Napi::String::New(env, m->backend->description()));
    return o;
  });
}

Napi::Value ModelObject::new_adapter(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const LoraConfig config = lora_config(call[0].As<Napi::Object>());
    bool lossless;
    if (!call[1].IsBigInt()) throw Error("E_SHAPE", "seed must be a BigInt");
    const uint64_t seed = call[1].As<Napi::BigInt>().Uint64Value(&lossless);
    return run_task<std::shared_ptr<Adapter>>(
        call.Env(), [m = model(), config, seed] { return cg::new_adapter(m, config, seed); },
        [](Napi::Env env, std::shared_ptr<Adapter>& adapter) -> Napi::Value { return AdapterObject::make(env, adapter); });
  });
}

Napi::Value ModelObject::load_adapter(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string dir = call[0].ToString();
    return run_task<std::shared_ptr<Adapter>>(
        call.Env(), [m = model(), dir] { return cg::load_adapter(m, dir); },
        [](Napi::Env env, std::shared_ptr<Adapter>& adapter) -> Napi::Value { return AdapterObject::make(env, adapter); });
  });
}

Napi::Value ModelObject::weights(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    std::optional<DType> stored;
    if (call[0].IsObject() && present(call[0].As<Napi::Object>(), "dtype")) stored = stored_dtype(call[0].As<Napi::Object>(), "dtype");
    return run_task<std::shared_ptr<Parameters>>(
        call.Env(), [m = model(), stored] { return std::make_shared<Parameters>(m, stored); },
        [](Napi::Env env, std::shared_ptr<Parameters>& parameters) -> Napi::Value { return WeightsObject::make(env, parameters); });
  });
}

Napi::Value ModelObject::sampler(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const double max_batch = number(call[0].As<Napi::Object>(), "maxBatch");
    if (!(max_batch >= 1)) throw Error("E_SHAPE", "maxBatch must be at least 1");
    return SamplerObject::make(call.Env(), model(), static_cast<int64_t>(max_batch));
  });
}

Napi::Value ModelObject::trainer(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    std::shared_ptr<Trainee> trained = WeightsObject::of(call[0]);
    if (!trained) trained = AdapterObject::of(call[0]);
    if (!trained || trained->model() != model()) throw Error("E_ADAPTER", "a trainer needs an adapter or the weights of this model");
    const auto trainer = std::make_shared<Trainer>(trained, optimizer_options(call[1].As<Napi::Object>()));
    return TrainerObject::make(call.Env(), trainer, call[0].As<Napi::Object>());
  });
}

Napi::Value ModelObject::score(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const Napi::Object request = call[0].As<Napi::Object>();
    const auto adapter = AdapterObject::of(request.Get("adapter"));
    if (adapter && adapter->model() != model()) throw Error("E_ADAPTER", "the adapter belongs to another model");
    const bool entropy = flag(request, "entropy");
    const auto work = [m = model(), sequences = sequences_of(request), adapter, entropy] {
      Scores scores;
      cg::score(m, sequences, adapter.get(), &scores.logp, entropy ? &scores.entropy : nullptr, nullptr);
      return scores;
    };
    return run_task<Scores>(call.Env(), work, [entropy](Napi::Env env, Scores& scores) -> Napi::Value {
      Napi::Object o = Napi::Object::New(env);
      o.Set("logprobs", js_floats(env, scores.logp));
      if (entropy) o.Set("entropy", js_floats(env, scores.entropy));
      return o;
    });
  });
}

Napi::Value ModelObject::last_logits(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const Napi::Object request = call[0].As<Napi::Object>();
    const auto adapter = AdapterObject::of(request.Get("adapter"));
    if (adapter && adapter->model() != model()) throw Error("E_ADAPTER", "the adapter belongs to another model");
    return run_task<std::vector<float>>(
        call.Env(), [m = model(), sequences = sequences_of(request), adapter] { return cg::last_logits(m, sequences, adapter.get()); },
        [](Napi::Env env, std::vector<float>& logits) -> Napi::Value { return js_floats(env, logits); });
  });
}

}  // namespace cg::node
