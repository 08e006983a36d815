#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {
namespace {

StepRequest request_of(const Napi::Value& value) {
  const Napi::Object o = value.As<Napi::Object>();
  StepRequest request = step_request(o);
  request.kl_adapter = AdapterObject::of(o.Get("klAdapter"));
  return request;
}

struct Gradient {
  StepStats stats;
  std::vector<float> flat;
};

}  // namespace

Napi::Function TrainerObject::define(Napi::Env env) {
  return DefineClass(
      env, "Trainer",
      {InstanceAccessor<&TrainerObject::trained>("trained"), InstanceAccessor<&TrainerObject::step>("step"), InstanceMethod<&TrainerObject::train>("train"),
       InstanceMethod<&TrainerObject::evaluate>("evaluate"), InstanceMethod<&TrainerObject::gradient>("gradient"),
       InstanceMethod<&TrainerObject::snapshot>("snapshot"), InstanceMethod<&TrainerObject::save_state>("saveState"),
       InstanceMethod<&TrainerObject::load_state>("loadState"), InstanceMethod<&TrainerObject::dispose>("dispose")});
}

Napi::Object TrainerObject::make(Napi::Env env, std::shared_ptr<Trainer> trainer, Napi::Object trained) {
  const Napi::Object object = classes(env).trainer.New({});
  TrainerObject* self = Unwrap(object);
  self->trained_ = Napi::Persistent(trained);
  self->trainer_ = std::move(trainer);
  return object;
}

std::shared_ptr<Trainer> TrainerObject::trainer() {
  if (!trainer_) throw Error("E_DISPOSED", "the trainer has been disposed of");
  return trainer_;
}

void TrainerObject::dispose(const Napi::CallbackInfo&) { trainer_.reset(); }

Napi::Value TrainerObject::trained(const Napi::CallbackInfo&) { return trained_.Value(); }

Napi::Value TrainerObject::step(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value { return Napi::Number::New(call.Env(), static_cast<double>(trainer()->step())); });
}

Napi::Value TrainerObject::train(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const auto work = [t = trainer(), request = request_of(call[0]), cancel = CancelObject::flag_of(call[1])] { return t->train(request, cancel.get()); };
    return run_task<StepStats>(call.Env(), work, [](Napi::Env env, StepStats& stats) -> Napi::Value { return js_step_stats(env, stats); });
  });
}

Napi::Value TrainerObject::evaluate(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const auto work = [t = trainer(), request = request_of(call[0]), cancel = CancelObject::flag_of(call[1])] { return t->evaluate(request, cancel.get()); };
    return run_task<StepStats>(call.Env(), work, [](Napi::Env env, StepStats& stats) -> Napi::Value { return js_step_stats(env, stats); });
  });
}

Napi::Value TrainerObject::gradient(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const auto work = [t = trainer(), request = request_of(call[0])] {
      Gradient g;
      g.stats = t->gradient(request, &g.flat, nullptr);
      return g;
    };
    return run_task<Gradient>(call.Env(), work, [t = trainer()](Napi::Env env, Gradient& g) -> Napi::Value {
      Napi::Object o = Napi::Object::New(env);
      o.Set("stats", js_step_stats(env, g.stats));
      Napi::Array tensors = Napi::Array::New(env);
      for (const FlatPart& part : t->trained()->parts()) {
        Napi::Object tensor = Napi::Object::New(env);
        tensor.Set("name", Napi::String::New(env, part.name));
        Napi::Array shape = Napi::Array::New(env, part.shape.size());
        for (uint32_t i = 0; i < part.shape.size(); ++i) shape.Set(i, Napi::Number::New(env, static_cast<double>(part.shape[i])));
        tensor.Set("shape", shape);
        tensor.Set("values", js_floats(env, {g.flat.begin() + part.offset, g.flat.begin() + part.offset + part.size()}));
        tensors.Set(tensors.Length(), tensor);
      }
      o.Set("tensors", tensors);
      return o;
    });
  });
}

Napi::Value TrainerObject::snapshot(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    return run_task<std::shared_ptr<Adapter>>(
        call.Env(), [t = trainer()] { return t->snapshot(); },
        [](Napi::Env env, std::shared_ptr<Adapter>& adapter) -> Napi::Value { return AdapterObject::make(env, adapter); });
  });
}

Napi::Value TrainerObject::save_state(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string path = call[0].ToString();
    return run_task(call.Env(), [t = trainer(), path] { t->save_state(path); });
  });
}

Napi::Value TrainerObject::load_state(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string path = call[0].ToString();
    return run_task(call.Env(), [t = trainer(), path] { t->load_state(path); });
  });
}

}  // namespace cg::node
