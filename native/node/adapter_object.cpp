#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {

Napi::Function AdapterObject::define(Napi::Env env) {
  return DefineClass(env, "Adapter",
                     {InstanceAccessor<&AdapterObject::config>("config"), InstanceAccessor<&AdapterObject::parameters>("parameters"),
                      InstanceMethod<&AdapterObject::save>("save"), InstanceMethod<&AdapterObject::dispose>("dispose")});
}

Napi::Object AdapterObject::make(Napi::Env env, std::shared_ptr<Adapter> adapter) {
  const Napi::Object object = classes(env).adapter.New({});
  Unwrap(object)->adapter_ = std::move(adapter);
  return object;
}

std::shared_ptr<Adapter> AdapterObject::of(const Napi::Value& value) {
  if (value.IsNull() || value.IsUndefined()) return nullptr;
  if (!value.IsObject() || !value.As<Napi::Object>().InstanceOf(classes(value.Env()).adapter.Value()))
    throw Error("E_ADAPTER", "adapter must be an adapter of this engine or null");
  const auto adapter = Unwrap(value.As<Napi::Object>())->adapter_;
  if (!adapter) throw Error("E_ADAPTER", "the adapter has been disposed of");
  return adapter;
}

Napi::Value AdapterObject::config(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value { return js_lora_config(info.Env(), of(info.This())->config()); });
}

Napi::Value AdapterObject::parameters(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value { return Napi::Number::New(info.Env(), static_cast<double>(of(info.This())->layout().size())); });
}

Napi::Value AdapterObject::save(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::string dir = info[0].ToString();
    return run_task(info.Env(), [adapter = of(info.This()), dir] { save_adapter(*adapter, dir); });
  });
}

Napi::Function CancelObject::define(Napi::Env env) { return DefineClass(env, "Cancel", {InstanceMethod<&CancelObject::cancel>("cancel")}); }

std::shared_ptr<std::atomic<bool>> CancelObject::flag_of(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().InstanceOf(classes(value.Env()).cancel.Value())) return nullptr;
  return Unwrap(value.As<Napi::Object>())->flag_;
}

}  // namespace cg::node
