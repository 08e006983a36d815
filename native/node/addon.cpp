// The addon: classes and functions of src/engine/types.ts for Node.
#include <functional>

#include "core/model.h"
#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {
namespace {

std::unique_ptr<Backend> make_backend(const std::string& name, int threads, DType precision) {
  if (name == "cpu") return make_cpu_backend(threads, precision);
  if (name == "reference") return make_reference_backend(threads, precision);
  if (name == "reference-remote") return make_reference_remote_backend(threads, 20, precision);
  throw Error("E_BACKEND", "backend " + name + " is not built: cpu, reference, reference-remote");
}

struct LoadOptions {
  std::string backend;
  int threads;
  DType precision;
  int64_t real_vocab;
};

LoadOptions load_options(const Napi::Object& o) {
  LoadOptions options;
  options.backend = text(o, "backend");
  options.threads = static_cast<int>(number(o, "threads"));
  if (options.threads < 0 || options.threads > 1024) throw Error("E_SHAPE", "threads must be between 0 (all cores) and 1024");
  const std::string dtype = text_or(o, "dtype", "fp32");
  if (dtype != "fp32" && dtype != "bf16") throw Error("E_SHAPE", "dtype must be fp32 or bf16");
  options.precision = dtype == "bf16" ? DType::bf16 : DType::f32;
  options.real_vocab = static_cast<int64_t>(number_or(o, "realVocab", 0));
  return options;
}

using MakeModel = std::function<std::shared_ptr<Model>(std::unique_ptr<Backend>, int64_t real_vocab)>;

Napi::Value model_task(Napi::Env env, const LoadOptions& o, const MakeModel& make) {
  return run_task<std::shared_ptr<Model>>(
      env, [=] { return make(make_backend(o.backend, o.threads, o.precision), o.real_vocab); },
      [](Napi::Env e, std::shared_ptr<Model>& model) -> Napi::Value { return ModelObject::make(e, model); });
}

Napi::Value load_model(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string dir = call[0].ToString();
    return model_task(call.Env(), load_options(call[1].As<Napi::Object>()),
                      [dir](std::unique_ptr<Backend> backend, int64_t real_vocab) { return cg::load_model(dir, std::move(backend), real_vocab); });
  });
}

Napi::Value random_model(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string config = call[0].ToString();
    const Napi::Object options = call[1].As<Napi::Object>();
    const uint64_t seed = big(options, "seed");
    return model_task(call.Env(), load_options(options), [config, seed](std::unique_ptr<Backend> backend, int64_t real_vocab) {
      return cg::random_model(config, std::move(backend), real_vocab, seed);
    });
  });
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto* all = new Classes();
  env.SetInstanceData(all);
  const auto add = [&](Napi::FunctionReference& reference, Napi::Function constructor) { reference = Napi::Persistent(constructor); };
  add(all->model, ModelObject::define(env));
  add(all->adapter, AdapterObject::define(env));
  add(all->weights, WeightsObject::define(env));
  add(all->sampler, SamplerObject::define(env));
  add(all->trainer, TrainerObject::define(env));
  add(all->cancel, CancelObject::define(env));
  exports.Set("Cancel", all->cancel.Value());
  exports.Set("loadModel", Napi::Function::New(env, load_model));
  exports.Set("randomModel", Napi::Function::New(env, random_model));
  define_functions(env, exports);
  return exports;
}

}  // namespace

Classes& classes(Napi::Env env) { return *env.GetInstanceData<Classes>(); }

NODE_API_MODULE(cg, init)

}  // namespace cg::node
