#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {

Napi::Function WeightsObject::define(Napi::Env env) {
  return DefineClass(env, "Weights",
                     {InstanceAccessor<&WeightsObject::parameters>("parameters"), InstanceMethod<&WeightsObject::save>("save"),
                      InstanceMethod<&WeightsObject::dispose>("dispose")});
}

Napi::Object WeightsObject::make(Napi::Env env, std::shared_ptr<Parameters> parameters) {
  const Napi::Object object = classes(env).weights.New({});
  Unwrap(object)->parameters_ = std::move(parameters);
  return object;
}

std::shared_ptr<Parameters> WeightsObject::of(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().InstanceOf(classes(value.Env()).weights.Value())) return nullptr;
  const auto parameters = Unwrap(value.As<Napi::Object>())->parameters_;
  if (!parameters) throw Error("E_DISPOSED", "the weights have been disposed of");
  return parameters;
}

Napi::Value WeightsObject::parameters(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value { return Napi::Number::New(info.Env(), static_cast<double>(of(info.This())->size())); });
}

Napi::Value WeightsObject::save(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::string dir = info[0].ToString();
    return run_task(info.Env(), [parameters = of(info.This()), dir] { parameters->save(dir); });
  });
}

}  // namespace cg::node
