// The shape of a model, read from a checkpoint's config.json.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace cg {

enum class Architecture { qwen3, qwen2, llama };

const char* name_of(Architecture);

/// How positions become angles. `llama3` stretches long wavelengths (Llama 3.1); every other scaling is refused.
struct RopeConfig {
  double theta = 10000;
  bool llama3 = false;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4, original_positions = 8192;  // llama3 only
};

struct ModelConfig {
  Architecture architecture = Architecture::qwen3;
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int64_t vocab = 0;  // rows of the embedding
  int64_t max_positions = 0;
  float eps = 1e-6f;
  RopeConfig rope;
  bool tied = false;
  DType dtype = DType::f32;       // that a checkpoint of this shape is written in (dtype, torch_dtype)
  double initializer_range = 0.02;
  bool qkv_bias = false, o_bias = false, mlp_bias = false, qk_norm = false;

  int64_t q_size() const { return heads * head_dim; }
  int64_t kv_size() const { return kv_heads * head_dim; }
};

/// Reads config.json in either layout: rope_theta and rope_scaling at the top (published checkpoints) or in rope_parameters (transformers 5).
/// Throws cg::Error{"E_CHECKPOINT"} for another architecture, activation, rope scaling, sliding window or quantised weights: all would give wrong numbers
/// silently.
ModelConfig read_config(const std::string& path);

}  // namespace cg
