// Between JS values and the core's structures. The shapes are those of src/engine/types.ts; a value of another type throws E_SHAPE with its name.
#pragma once

#include <string>
#include <vector>

#include "core/optimizer.h"
#include "core/sampling.h"
#include "core/trainer.h"
#include "napi.h"

namespace cg::node {

bool present(const Napi::Object&, const char* key);  // neither undefined nor null
double number(const Napi::Object&, const char* key);
double number_or(const Napi::Object&, const char* key, double fallback);
bool flag(const Napi::Object&, const char* key);  // absent: false
std::string text(const Napi::Object&, const char* key);
std::string text_or(const Napi::Object&, const char* key, const char* fallback);
uint64_t big(const Napi::Object&, const char* key);  // BigInt, its low 64 bits
Napi::Object object(const Napi::Object&, const char* key);
Napi::Array array(const Napi::Object&, const char* key);

/// A typed array's elements; absent: empty.
std::vector<int32_t> int32s(const Napi::Object&, const char* key);
std::vector<float> floats(const Napi::Object&, const char* key);
std::vector<double> doubles(const Napi::Object&, const char* key);

Napi::Int32Array js_int32s(Napi::Env, const std::vector<int32_t>&);
Napi::Float32Array js_floats(Napi::Env, const std::vector<float>&);
Napi::Float64Array js_doubles(Napi::Env, const std::vector<double>&);

/// fp32, bf16 or fp16.
DType stored_dtype(const Napi::Object&, const char* key);
LoraConfig lora_config(const Napi::Object&);
Napi::Object js_lora_config(Napi::Env, const LoraConfig&);
SampleParams sample_params(const Napi::Object&);
OptimizerOptions optimizer_options(const Napi::Object&);
Sequence sequence(const Napi::Object&);
PolicyLoss policy_loss_options(const Napi::Object&);
Denominators denominators(const Napi::Object&);

/// All of a StepRequest but klAdapter.
StepRequest step_request(const Napi::Object&);
Napi::Object js_step_stats(Napi::Env, const StepStats&);

}  // namespace cg::node
