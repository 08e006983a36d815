// A loaded model: frozen weights in a backend's hands, its shape, and the tables every batch shares.
#pragma once

#include <array>
#include <memory>
#include <mutex>
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

struct RopeTensors {
  Tensor cos, sin;  // [P, D/2]
};

struct Model {
  std::unique_ptr<Backend> backend;
  ModelConfig config;
  std::string name;        // last part of the checkpoint's path
  int64_t real_vocab = 0;  // rows from here on are padding
  int64_t parameters = 0;
  Weight embedding, final_norm, head;  // head = embedding when tied
  std::vector<Layer> layers;

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

}  // namespace cg
