// One trie of sequences through the model: log-probs of its loss tokens, and for given coefficients the gradient of what is trained.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/backward.h"
#include "core/trie.h"

namespace cg {

/// Owns a queue and an arena that grow to the largest batch and are reused.
class TriePass {
 public:
  explicit TriePass(std::shared_ptr<Model>);

  /// Uploads a trie's lists and plans memory for `forward` alone; `rank` is the largest adapter's that will run.
  void load(const TrieBatch&, int64_t rank);
  /// The same for `forward` and `backward`, which will be asked for `trained`: keeps as much as `budget` bytes allow, layer inputs at least.
  void load_to_train(const TrieBatch&, int64_t rank, const Trainee& trained, int64_t budget);
  /// What is kept since the last load, and the bytes of its plan.
  Keep kept() const { return state_.keep; }
  int64_t planned_bytes() const { return planned_bytes_; }

  /// Runs the loaded trie. null: the base model.
  void forward(const Adapter*);

  /// Of the last forward pass, one per loss token: sequences in order, their tokens in order. `entropy` may be null.
  void log_probs(std::vector<float>* logp, std::vector<float>* entropy);

  /// Logits [M, V] of the head rows, padding rows of the vocabulary included.
  void logits(std::vector<float>* out);

  /// Writes Σ coefficient · d logp / d value into `gradient`; coefficients are in the order of `log_probs`. The last forward pass must have been with the
  /// trainee's adapter.
  void backward(const Trainee&, std::span<const float> coefficient, Tensor gradient);

  Queue& queue() { return *queue_; }

 private:
  void pack(const TrieBatch&);
  void layout(Arena&, const TrieBatch&, int64_t rank, const Trainee*, Keep);
  void place(const TrieBatch&, int64_t rank, const Trainee*, Keep);

  std::shared_ptr<Model> model_;
  std::unique_ptr<Queue> queue_;
  Arena arena_;
  ListPack pack_;
  std::vector<int32_t> entry_of_;
  int64_t rows_ = 0;
  ForwardLists lists_;
  LossEntries entries_;
  RopeTensors rope_;
  Tensor lists_room_;
  int64_t planned_bytes_ = 0;
  ForwardState state_;
  BackwardState scratch_;
  Tensor logp_, entropy_, coefficient_, dhead_, head_workspace_;
};

}  // namespace cg
