// A loaded model: frozen weights in a backend's hands, its shape, and the tables every batch shares.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/config.h"

namespace cg {

/// The seven linears of a layer, in the order adapters store them.
enum LinearKind { q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj };
constexpr int linear_kinds = 7;

/// "self_attn.q_proj", "mlp.gate_proj" …
const char* path_of(LinearKind);
/// "q_proj", "gate_proj" …
const char* name_of(LinearKind);

struct Linear {
  Weight weight, bias;  // [out, in], [out]
  int64_t in = 0, out = 0;
};

struct Layer {
  std::array<Linear, linear_kinds> linears;
  Weight input_norm, post_norm;  // [H]
  Weight q_norm, k_norm;         // [D], Qwen3 only
};

enum class ParameterKind { embedding, matrix, norm, bias };  // matrix: a linear's weight, or a head's that is not the embedding

/// A tensor of the checkpoint that the model uses.
struct Parameter {
  std::string name;  // as the checkpoint has it: model.layers.0.self_attn.q_proj.weight
  std::vector<int64_t> shape;
  ParameterKind kind;
  DType dtype = DType::f32;  // as it is stored
  Weight weight;

  int64_t size() const { return elements(shape); }
};

struct RopeTensors {
  Tensor cos, sin;  // [P, D/2]
};

struct Model {
  std::unique_ptr<Backend> backend;
  ModelConfig config;
  std::string name;        // last part of the checkpoint's path
  int64_t real_vocab = 0;  // rows from here on are padding
  Weight embedding, final_norm, head;  // head = embedding when tied
  std::vector<Layer> layers;
  std::vector<Parameter> parameters;  // all of them, in the order of the layers
  /// The values that all parameters began with, in fp32, one after the other: a backend gives none back. Throws E_CHECKPOINT when the files are gone by now.
  std::function<std::vector<float>()> first_values;

  /// Set once and for all when training of all weights begins: what was computed with earlier ones must not be mixed with what comes.
  std::atomic<bool> in_training{false};
  /// Held shared by passes, exclusively while weights are replaced.
  std::shared_mutex weights;

  int64_t parameter_count() const {
    int64_t n = 0;
    for (const Parameter& p : parameters) n += p.size();
    return n;
  }

  /// Tables that cover positions 0 … positions − 1; made on first need, kept for the model's life. Throws E_CONTEXT beyond max_positions.
  RopeTensors rope(Queue&, int64_t positions);

  /// Throws E_VOCABULARY for an id that is negative or in the padding rows.
  void check_id(int64_t id) const;

 private:
  struct Table {
    int64_t positions;
    RopeTensors tensors;
  };
  std::mutex mutex_;
  std::vector<Table> tables_;
};

/// Loads config.json and model.safetensors (or the shards of model.safetensors.index.json) of a directory into a backend. real_vocab 0: all rows of the
/// embedding. Throws cg::Error{"E_CHECKPOINT"} that names the tensor and the shapes, "E_VOCABULARY" for a real_vocab that does not fit.
std::shared_ptr<Model> load_model(const std::string& dir, std::unique_ptr<Backend>, int64_t real_vocab);

/// A model of a config.json with weights as transformers starts them: matrices and the embedding normal with mean 0 and config.json's initializer_range (0.02
/// where it says nothing) as deviation, drawn from (seed, tensor, element); biases 0, norms 1. They are rounded to config.json's dtype (fp32 where it
/// names none).
std::shared_ptr<Model> random_model(const std::string& config_file, std::unique_ptr<Backend>, int64_t real_vocab, uint64_t seed);

}  // namespace cg
