#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {

/// One request's way back from the sampler's thread to its promise.
struct SamplerObject::Outcome {
  SamplerObject* owner;  // referenced while requests are under way
  Napi::Promise::Deferred deferred;
  Generation generation;

  void settle(Napi::Env env) {
    if (!generation.error_code.empty()) return deferred.Reject(js_error(env, generation.error_code, generation.error).Value());
    Napi::Object o = Napi::Object::New(env);
    o.Set("ids", js_int32s(env, generation.ids));
    o.Set("logprobs", js_floats(env, generation.logprobs));
    o.Set("stop", Napi::String::New(env, generation.stopped ? "stop" : "length"));
    deferred.Resolve(o);
  }
};

Napi::Function SamplerObject::define(Napi::Env env) {
  return DefineClass(env, "Sampler",
                     {InstanceMethod<&SamplerObject::generate>("generate"), InstanceMethod<&SamplerObject::release>("release"),
                      InstanceMethod<&SamplerObject::stats>("stats"), InstanceMethod<&SamplerObject::close>("close")});
}

Napi::Object SamplerObject::make(Napi::Env env, std::shared_ptr<Model> model, int64_t max_batch) {
  const Napi::Object object = classes(env).sampler.New({});
  SamplerObject* self = Unwrap(object);
  self->resolve_ = Napi::ThreadSafeFunction::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "cg sampler", 0, 1);
  self->resolve_.Unref(env);
  self->sampler_ = std::make_shared<Sampler>(std::move(model), max_batch);
  self->hook_ = env.AddCleanupHook(
      +[](SamplerObject* ending) {
        ending->environment_ends_ = true;
        if (ending->sampler_) ending->sampler_->close();
      },
      self);
  return object;
}

// At the environment's end the thread-safe function is torn down by it, and must not be touched.
SamplerObject::~SamplerObject() {
  if (environment_ends_) return;
  if (sampler_) sampler_->close();
  if (!hook_.IsEmpty()) hook_.Remove(Env());
  if (resolve_) resolve_.Release();
}

std::shared_ptr<Sampler> SamplerObject::sampler() {
  if (!sampler_) throw Error("E_CANCELLED", "the sampler is closed");
  return sampler_;
}

Napi::Value SamplerObject::generate(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object o = call[0].As<Napi::Object>();
    GenerateRequest request;
    request.ids = int32s(o, "ids");
    request.adapter = AdapterObject::of(o.Get("adapter"));
    request.params = sample_params(object(o, "sampling"));
    request.stop_ids = int32s(o, "stopIds");
    request.max_tokens = static_cast<int64_t>(number(o, "maxTokens"));
    request.seed = big(o, "seed");
    request.rollout = big(o, "rollout");
    request.session = text(o, "session");
    request.cancelled = CancelObject::flag_of(call[1]);

    const auto deferred = Napi::Promise::Deferred::New(env);
    auto* outcome = new Outcome{this, deferred, {}};
    const auto done = [resolve = resolve_, outcome](Generation generation) {
      outcome->generation = std::move(generation);
      const auto back = [](Napi::Env e, Napi::Function, Outcome* out) {
        if (e != nullptr) {
          out->settle(e);
          out->owner->settled(e);
        }
        delete out;
      };
      if (resolve.NonBlockingCall(outcome, back) != napi_ok) delete outcome;  // the process is ending
    };
    try {
      sampler()->submit(std::move(request), done);
    } catch (...) {
      delete outcome;
      throw;
    }
    if (pending_++ == 0) {
      Ref();
      resolve_.Ref(env);
    }
    return deferred.Promise();
  });
}

void SamplerObject::settled(Napi::Env env) {
  if (--pending_ > 0) return;
  resolve_.Unref(env);
  Unref();
}

void SamplerObject::release(const Napi::CallbackInfo& call) {
  guarded(call.Env(), [&] {
    if (sampler_) sampler_->release(call[0].ToString());
  });
}

Napi::Value SamplerObject::stats(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const SamplerStats stats = sampler()->stats();
    Napi::Object o = Napi::Object::New(call.Env());
    const auto put = [&](const char* key, int64_t value) { o.Set(key, Napi::Number::New(call.Env(), static_cast<double>(value))); };
    put("prefillTokens", stats.prefill_tokens);
    put("sharedTokens", stats.shared_tokens);
    put("decodeTokens", stats.decode_tokens);
    put("steps", stats.steps);
    return o;
  });
}

Napi::Value SamplerObject::close(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    auto sampler = std::move(sampler_);
    sampler_ = nullptr;
    return run_task(call.Env(), [sampler] {
      if (sampler) sampler->close();
    });
  });
}

}  // namespace cg::node
