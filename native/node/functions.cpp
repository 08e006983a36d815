// Functions of the addon that need no model.
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "core/config.h"
#include "core/optimizer.h"
#include "core/rope_table.h"
#include "core/safetensors.h"
#include "core/sampling_rules.h"
#include "core/schedule.h"
#include "node/convert.h"
#include "node/objects.h"
#include "node/promise.h"

namespace cg::node {
namespace {

Napi::Value read_safetensors(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Safetensors file(call[0].ToString());
    Napi::Array tensors = Napi::Array::New(env);
    for (const StoredTensor& t : file.tensors()) {
      Napi::Object o = Napi::Object::New(env);
      o.Set("name", Napi::String::New(env, t.name));
      o.Set("dtype", Napi::String::New(env, t.dtype));
      Napi::Array shape = Napi::Array::New(env);
      for (const int64_t n : t.shape) shape.Set(shape.Length(), Napi::Number::New(env, static_cast<double>(n)));
      o.Set("shape", shape);
      o.Set("values", js_doubles(env, values_as_double(t)));
      tensors.Set(tensors.Length(), o);
    }
    Napi::Object metadata = Napi::Object::New(env);
    for (const auto& [key, value] : file.metadata()) metadata.Set(key, Napi::String::New(env, value));
    Napi::Object result = Napi::Object::New(env);
    result.Set("tensors", tensors);
    result.Set("metadata", metadata);
    return result;
  });
}

Napi::Value write_safetensors(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Array list = call[1].As<Napi::Array>();
    std::vector<std::vector<float>> values;
    std::vector<NamedTensor> tensors;
    for (uint32_t i = 0; i < list.Length(); ++i) {
      const Napi::Object o = list.Get(i).As<Napi::Object>();
      NamedTensor t{text(o, "name"), {}, nullptr};
      values.push_back(floats(o, "values"));
      const Napi::Array shape = array(o, "shape");
      int64_t size = 1;
      for (uint32_t d = 0; d < shape.Length(); ++d) {
        t.shape.push_back(shape.Get(d).ToNumber().Int64Value());
        size *= t.shape.back();
      }
      if (size != static_cast<int64_t>(values.back().size())) throw Error("E_SHAPE", "tensor " + t.name + ": shape and values do not fit");
      tensors.push_back(std::move(t));
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
    std::vector<std::pair<std::string, std::string>> metadata;
    if (call[2].IsObject()) {
      const Napi::Object o = call[2].As<Napi::Object>();
      const Napi::Array keys = o.GetPropertyNames();
      for (uint32_t i = 0; i < keys.Length(); ++i) metadata.emplace_back(keys.Get(i).ToString(), o.Get(keys.Get(i)).ToString());
    }
    cg::write_safetensors(call[0].ToString(), tensors, metadata);
    return env.Undefined();
  });
}

Napi::Value policy_loss(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object o = call[0].As<Napi::Object>();
    const PolicyLoss loss = policy_loss_options(object(o, "loss"));
    const Denominators whole = denominators(object(o, "denominators"));
    const std::vector<double> advantages = doubles(o, "advantages");
    const Napi::Array current = array(o, "current"), old = array(o, "old"), mask = array(o, "mask");
    const bool has_ref = present(o, "ref");
    LossSums sums;
    double tokens = 0;
    Napi::Array gradient = Napi::Array::New(env);
    for (uint32_t row = 0; row < current.Length(); ++row) {
      const auto values = [&](const Napi::Array& rows) {
        const auto list = rows.Get(row).As<Napi::Float64Array>();
        return std::vector<double>(list.Data(), list.Data() + list.ElementLength());
      };
      const std::vector<double> cur = values(current), before = values(old), ref = has_ref ? values(array(o, "ref")) : std::vector<double>();
      const auto on = mask.Get(row).As<Napi::Uint8Array>();
      if (before.size() != cur.size() || on.ElementLength() != cur.size() || (has_ref && ref.size() != cur.size()) || row >= advantages.size())
        throw Error("E_SHAPE", "row " + std::to_string(row) + ": current, old, ref and mask must have equal lengths, advantages one per row");
      std::vector<double> c, b, r;
      for (size_t i = 0; i < cur.size(); ++i) {
        if (!on[i]) continue;
        c.push_back(cur[i]);
        b.push_back(before[i]);
        if (has_ref) r.push_back(ref[i]);
      }
      const std::vector<double> advantage(c.size(), advantages[row]);
      std::vector<double> coefficient(c.size()), all(cur.size(), 0.0);
      sums.add(cg::policy_loss(loss, whole, {c, b, r, advantage}, coefficient));
      tokens += static_cast<double>(c.size());
      for (size_t i = 0, at = 0; i < cur.size(); ++i)
        if (on[i]) all[i] = coefficient[at++];
      gradient.Set(row, js_doubles(env, all));
    }
    Napi::Object result = Napi::Object::New(env);
    result.Set("loss", Napi::Number::New(env, sums.loss));
    result.Set("gradient", gradient);
    result.Set("kl", Napi::Number::New(env, sums.k3 / std::max(tokens, 1.0)));
    result.Set("clipFraction", Napi::Number::New(env, sums.clipped / std::max(tokens, 1.0)));
    return result;
  });
}

Napi::Value sample_distribution(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto logits = call[0].As<Napi::Float32Array>();
    const SampleParams p = sample_params(call[1].As<Napi::Object>());
    const auto previous = call[2].As<Napi::Int32Array>();
    std::vector<float> scores(logits.Data(), logits.Data() + logits.ElementLength());
    const auto vocab = static_cast<int64_t>(scores.size());
    const std::set<int32_t> distinct(previous.Data(), previous.Data() + previous.ElementLength());
    for (const int32_t id : distinct)
      if (id < 0 || id >= vocab) throw Error("E_VOCABULARY", "previous id " + std::to_string(id) + " is outside the " + std::to_string(vocab) + " logits");
    const std::vector<int32_t> seen(distinct.begin(), distinct.end());
    std::vector<double> probability(scores.size(), 0.0);
    apply_penalty(scores.data(), seen.data(), static_cast<int64_t>(seen.size()), p.repetition_penalty);
    if (p.temperature == 0) {
      if (vocab > 0) probability[static_cast<size_t>(most_likely(scores.data(), vocab))] = 1;
      return js_doubles(env, probability);
    }
    apply_temperature(scores.data(), vocab, p.temperature);
    std::vector<int32_t> order(scores.size());
    cut_top_k(scores.data(), vocab, p.top_k, order.data());
    const float largest = vocab > 0 ? *std::max_element(scores.begin(), scores.end()) : 0;
    std::vector<float> weight(scores.size());
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = std::exp(scores[i] - largest);
    cut_top_p(scores.data(), weight.data(), vocab, p.top_p, order.data());
    cut_min_p(scores.data(), weight.data(), vocab, p.min_p);
    double total = 0;
    for (const float w : weight) total += w;
    for (size_t i = 0; i < weight.size(); ++i) probability[i] = weight[i] / total;
    return js_doubles(env, probability);
  });
}

Napi::Value learning_rate(const Napi::CallbackInfo& call) {
  return guarded(call.Env(), [&]() -> Napi::Value {
    const std::string name = call[0].ToString();
    if (name != "constant" && name != "linear" && name != "cosine") throw Error("E_SHAPE", "schedule must be constant, linear or cosine");
    const Schedule schedule = name == "constant" ? Schedule::constant : name == "linear" ? Schedule::linear : Schedule::cosine;
    return Napi::Number::New(call.Env(), cg::learning_rate(schedule, call[1].ToNumber(), call[2].ToNumber().Int64Value(), call[3].ToNumber().Int64Value(),
                                                           call[4].ToNumber().Int64Value()));
  });
}

Napi::Value rope_rows(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const ModelConfig config = read_config(std::string(call[0].ToString()) + "/config.json");
    const auto positions = call[1].As<Napi::Int32Array>();
    const std::vector<double> inverse = inverse_frequencies(config.rope, config.head_dim);
    std::vector<float> cos, sin;
    for (size_t i = 0; i < positions.ElementLength(); ++i) append_rope_rows(inverse, positions[i], positions[i] + 1, &cos, &sin);
    Napi::Object result = Napi::Object::New(env);
    result.Set("inverse", js_doubles(env, inverse));
    result.Set("cos", js_floats(env, cos));
    result.Set("sin", js_floats(env, sin));
    return result;
  });
}

// POLLERR and POLLHUP are always reported; nothing else is asked for.
Napi::Value reader_gone(const Napi::CallbackInfo& call) {
  pollfd descriptor{call[0].ToNumber().Int32Value(), 0, 0};
  const int ready = ::poll(&descriptor, 1, 0);
  return Napi::Boolean::New(call.Env(), ready > 0 && (descriptor.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0);
}

Napi::Value adamw(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object o = call[0].As<Napi::Object>();
    Napi::Float32Array p = o.Get("p").As<Napi::Float32Array>(), m = o.Get("m").As<Napi::Float32Array>(), v = o.Get("v").As<Napi::Float32Array>();
    const std::vector<float> g = floats(o, "g");
    const size_t n = g.size();
    if (p.ElementLength() != n || m.ElementLength() != n || v.ElementLength() != n) throw Error("E_SHAPE", "p, g, m and v must have equal lengths");
    const auto backend = make_reference_backend(1);
    const auto queue = backend->queue();
    const FlatSpan parameters(*backend, static_cast<int64_t>(n)), gradient(*backend, static_cast<int64_t>(n));
    OptimizerState state(*backend, static_cast<int64_t>(n));
    backend->upload(*queue, p.Data(), parameters.tensor());
    backend->upload(*queue, g.data(), gradient.tensor());
    backend->upload(*queue, m.Data(), state.m.tensor());
    backend->upload(*queue, v.Data(), state.v.tensor());
    state.step = static_cast<int64_t>(number(o, "step")) - 1;
    const double norm = global_norm(*backend, *queue, gradient.tensor());
    adamw_step(*backend, *queue, optimizer_options(object(o, "optimizer")), number(o, "lr"), number(o, "clip"), norm, parameters.tensor(),
               gradient.tensor(), static_cast<int64_t>(n), state);
    backend->download(*queue, parameters.tensor(), p.Data());
    backend->download(*queue, state.m.tensor(), m.Data());
    backend->download(*queue, state.v.tensor(), v.Data());
    Napi::Object result = Napi::Object::New(env);
    result.Set("norm", Napi::Number::New(env, norm));
    return result;
  });
}

Napi::Value cpu(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  std::string model = "unknown", line;
  std::ifstream info("/proc/cpuinfo");
  while (std::getline(info, line))
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  Napi::Array features = Napi::Array::New(env);
#if defined(__x86_64__)
  const auto add = [&](const char* name, bool has) {
    if (has) features.Set(features.Length(), Napi::String::New(env, name));
  };
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512bf16", __builtin_cpu_supports("avx512bf16"));
#endif
  Napi::Object result = Napi::Object::New(env);
  result.Set("model", Napi::String::New(env, model));
  result.Set("features", features);
  return result;
}

}  // namespace

void define_functions(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) { exports.Set(name, Napi::Function::New(env, function, name)); };
  add("readSafetensors", read_safetensors);
  add("writeSafetensors", write_safetensors);
  add("policyLoss", policy_loss);
  add("sampleDistribution", sample_distribution);
  add("learningRate", learning_rate);
  add("ropeRows", rope_rows);
  add("readerGone", reader_gone);
  add("adamwStep", adamw);
  add("cpu", cpu);
}

}  // namespace cg::node
