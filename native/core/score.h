// Log-probs, entropies and logits of given sequences.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/trie_pass.h"

namespace cg {

/// Log-prob of every loss token (and its entropy in nats unless null), sequences in order. null adapter: the base model. Same bits as the trainer's and the
/// sampler's.
void score(const std::shared_ptr<Model>&, std::vector<Sequence>, const Adapter*, std::vector<float>* logp, std::vector<float>* entropy,
           const std::atomic<bool>* cancel);

/// Logits after each sequence's last token, [sequences, V].
std::vector<float> last_logits(const std::shared_ptr<Model>&, std::vector<Sequence>, const Adapter*);

}  // namespace cg
