// The addon: classes and functions of src/engine/types.ts for Node.
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

Napi::Value load_model(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string dir = call[0].ToString();
    const Napi::Object options = call[1].As<Napi::Object>();
    const std::string backend = text(options, "backend");
    const int threads = static_cast<int>(number(options, "threads"));
    if (threads < 0 || threads > 1024) throw Error("E_SHAPE", "threads must be between 0 (all cores) and 1024");
    const std::string dtype = text_or(options, "dtype", "fp32");
    if (dtype != "fp32" && dtype != "bf16") throw Error("E_SHAPE", "dtype must be fp32 or bf16");
    const DType precision = dtype == "bf16" ? DType::bf16 : DType::f32;
    const auto real_vocab = static_cast<int64_t>(number_or(options, "realVocab", 0));
    return run_task<std::shared_ptr<Model>>(
        call.Env(), [=] { return cg::load_model(dir, make_backend(backend, threads, precision), real_vocab); },
        [](Napi::Env env, std::shared_ptr<Model>& model) -> Napi::Value { return ModelObject::make(env, model); });
  });
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto* all = new Classes();
  env.SetInstanceData(all);
  const auto add = [&](Napi::FunctionReference& reference, Napi::Function constructor) { reference = Napi::Persistent(constructor); };
  add(all->model, ModelObject::define(env));
  add(all->adapter, AdapterObject::define(env));
  add(all->sampler, SamplerObject::define(env));
  add(all->trainer, TrainerObject::define(env));
  add(all->cancel, CancelObject::define(env));
  exports.Set("Cancel", all->cancel.Value());
  exports.Set("loadModel", Napi::Function::New(env, load_model));
  define_functions(env, exports);
  return exports;
}

}  // namespace

Classes& classes(Napi::Env env) { return *env.GetInstanceData<Classes>(); }

NODE_API_MODULE(cg, init)

}  // namespace cg::node
