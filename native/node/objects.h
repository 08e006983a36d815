// The addon's JS classes. Each holds a shared pointer into the core; what a request needs is copied in, so an object may be disposed of or collected at any
// time.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/adapter.h"
#include "core/parameters.h"
#include "core/sampler.h"
#include "core/trainer.h"
#include "napi.h"

namespace cg::node {

/// Constructors of this environment.
struct Classes {
  Napi::FunctionReference model, adapter, weights, sampler, trainer, cancel;
};
Classes& classes(Napi::Env);

/// `new Cancel()`, then `cancel()` from an AbortSignal's listener.
class CancelObject : public Napi::ObjectWrap<CancelObject> {
 public:
  static Napi::Function define(Napi::Env);
  explicit CancelObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<CancelObject>(info) {}
  /// The flag of an optional argument; null when there is none.
  static std::shared_ptr<std::atomic<bool>> flag_of(const Napi::Value&);

 private:
  void cancel(const Napi::CallbackInfo&) { flag_->store(true); }
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

class AdapterObject : public Napi::ObjectWrap<AdapterObject> {
 public:
  static Napi::Function define(Napi::Env);
  static Napi::Object make(Napi::Env, std::shared_ptr<Adapter>);
  explicit AdapterObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<AdapterObject>(info) {}
  /// The adapter of a value; null for null and undefined. Throws E_ADAPTER for a disposed one.
  static std::shared_ptr<Adapter> of(const Napi::Value&);

 private:
  Napi::Value config(const Napi::CallbackInfo&);
  Napi::Value parameters(const Napi::CallbackInfo&);
  Napi::Value save(const Napi::CallbackInfo&);
  void dispose(const Napi::CallbackInfo&) { adapter_.reset(); }
  std::shared_ptr<Adapter> adapter_;
};

class WeightsObject : public Napi::ObjectWrap<WeightsObject> {
 public:
  static Napi::Function define(Napi::Env);
  static Napi::Object make(Napi::Env, std::shared_ptr<Parameters>);
  explicit WeightsObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<WeightsObject>(info) {}
  /// The parameters of a value; null when it is something else. Throws E_DISPOSED for disposed ones.
  static std::shared_ptr<Parameters> of(const Napi::Value&);

 private:
  Napi::Value parameters(const Napi::CallbackInfo&);
  Napi::Value save(const Napi::CallbackInfo&);
  void dispose(const Napi::CallbackInfo&) { parameters_.reset(); }
  std::shared_ptr<Parameters> parameters_;
};

class ModelObject : public Napi::ObjectWrap<ModelObject> {
 public:
  static Napi::Function define(Napi::Env);
  static Napi::Object make(Napi::Env, std::shared_ptr<Model>);
  explicit ModelObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<ModelObject>(info) {}

 private:
  Napi::Value info(const Napi::CallbackInfo&);
  Napi::Value new_adapter(const Napi::CallbackInfo&);
  Napi::Value load_adapter(const Napi::CallbackInfo&);
  Napi::Value weights(const Napi::CallbackInfo&);
  Napi::Value sampler(const Napi::CallbackInfo&);
  Napi::Value trainer(const Napi::CallbackInfo&);
  Napi::Value score(const Napi::CallbackInfo&);
  Napi::Value last_logits(const Napi::CallbackInfo&);
  void dispose(const Napi::CallbackInfo&) { model_.reset(); }
  std::shared_ptr<Model> model();
  std::shared_ptr<Model> model_;
};

class TrainerObject : public Napi::ObjectWrap<TrainerObject> {
 public:
  static Napi::Function define(Napi::Env);
  /// `trained`: the object of what it trains.
  static Napi::Object make(Napi::Env, std::shared_ptr<Trainer>, Napi::Object trained);
  explicit TrainerObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<TrainerObject>(info) {}

 private:
  Napi::Value trained(const Napi::CallbackInfo&);
  Napi::Value step(const Napi::CallbackInfo&);
  Napi::Value train(const Napi::CallbackInfo&);
  Napi::Value evaluate(const Napi::CallbackInfo&);
  Napi::Value gradient(const Napi::CallbackInfo&);
  Napi::Value snapshot(const Napi::CallbackInfo&);
  Napi::Value save_state(const Napi::CallbackInfo&);
  Napi::Value load_state(const Napi::CallbackInfo&);
  void dispose(const Napi::CallbackInfo&);
  std::shared_ptr<Trainer> trainer();
  std::shared_ptr<Trainer> trainer_;
  Napi::ObjectReference trained_;
};

class SamplerObject : public Napi::ObjectWrap<SamplerObject> {
 public:
  static Napi::Function define(Napi::Env);
  static Napi::Object make(Napi::Env, std::shared_ptr<Model>, int64_t max_batch);
  explicit SamplerObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SamplerObject>(info) {}
  ~SamplerObject() override;

 private:
  struct Outcome;
  using Hook = Napi::Env::CleanupHook<void (*)(SamplerObject*), SamplerObject>;
  Napi::Value generate(const Napi::CallbackInfo&);
  void release(const Napi::CallbackInfo&);
  Napi::Value stats(const Napi::CallbackInfo&);
  Napi::Value close(const Napi::CallbackInfo&);
  void settled(Napi::Env);
  std::shared_ptr<Sampler> sampler();
  std::shared_ptr<Sampler> sampler_;
  Napi::ThreadSafeFunction resolve_;  // keeps the process alive only while requests are under way
  int64_t pending_ = 0;
  Hook hook_;  // the thread ends before the environment does
  bool environment_ends_ = false;
};

/// Functions without an object: readSafetensors, policyLoss …
void define_functions(Napi::Env, Napi::Object exports);

}  // namespace cg::node
