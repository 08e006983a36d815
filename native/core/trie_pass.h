// One trie of sequences through the model: log-probs of its loss tokens, and the adapter's gradient for given coefficients.
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

  /// Uploads a trie's lists and plans its memory; `rank` is the largest adapter's that will run, `train` keeps what `backward` needs.
  void load(const TrieBatch&, int64_t rank, bool train);

  /// Runs the loaded trie. null: the base model.
  void forward(const Adapter*);

  /// Of the last forward pass, one per loss token: sequences in order, their tokens in order. `entropy` may be null.
  void log_probs(std::vector<float>* logp, std::vector<float>* entropy);

  /// Logits [M, V] of the head rows, padding rows of the vocabulary included.
  void logits(std::vector<float>* out);

  /// Writes Σ coefficient · d logp / d factor into `gradient`; coefficients are in the order of `log_probs`. The last forward pass must have been with this
  /// adapter.
  void backward(const Adapter&, std::span<const float> coefficient, Tensor gradient);

  Queue& queue() { return *queue_; }

 private:
  std::shared_ptr<Model> model_;
  std::unique_ptr<Queue> queue_;
  Arena arena_;
  ListPack pack_;
  std::vector<int32_t> entry_of_;
  int64_t rows_ = 0;
  ForwardLists lists_;
  LossEntries entries_;
  RopeTensors rope_;
  ForwardState state_;
  BackwardState scratch_;
  Tensor logp_, entropy_, coefficient_, dhead_, head_workspace_;
};

}  // namespace cg
