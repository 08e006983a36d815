#include "core/score.h"

#include <algorithm>

#include "core/error.h"

namespace cg {
namespace {

constexpr int64_t rows_per_pass = 4096;

}  // namespace

void score(const std::shared_ptr<Model>& model, std::vector<Sequence> sequences, const Adapter* adapter, std::vector<float>* logp, std::vector<float>* entropy,
           const std::atomic<bool>* cancel) {
  for (const Sequence& s : sequences) check_sequence(*model, s);
  const std::shared_lock weights(model->weights);
  TriePass pass(model);
  logp->clear();
  if (entropy) entropy->clear();
  for (size_t next = 0; next < sequences.size();) {
    if (cancel && cancel->load()) throw Error("E_CANCELLED", "cancelled");
    TrieBuilder builder;
    for (; next < sequences.size(); ++next) {
      const Sequence& s = sequences[next];
      if (s.loss_tokens() == 0) continue;
      if (builder.rows() > 0 && builder.rows() + builder.new_rows(s) > rows_per_pass) break;
      builder.add(s);
    }
    if (builder.rows() == 0) break;
    pass.load(builder.build(), adapter ? adapter->config().rank : 0);
    pass.forward(adapter);
    std::vector<float> part, part_entropy;
    pass.log_probs(&part, entropy ? &part_entropy : nullptr);
    logp->insert(logp->end(), part.begin(), part.end());
    if (entropy) entropy->insert(entropy->end(), part_entropy.begin(), part_entropy.end());
  }
}

std::vector<float> last_logits(const std::shared_ptr<Model>& model, std::vector<Sequence> sequences, const Adapter* adapter) {
  const std::shared_lock weights(model->weights);
  std::vector<float> result;
  TriePass pass(model);
  for (Sequence& s : sequences) {
    s.spans.clear();
    check_sequence(*model, s);
    if (s.ids.empty()) throw Error("E_SHAPE", "a sequence without tokens has no last token");
    const Sequence* one = &s;
    TrieBatch batch = build_trie(std::span(&one, 1));
    batch.head_row = batch.last_row;
    pass.load(batch, adapter ? adapter->config().rank : 0);
    pass.forward(adapter);
    std::vector<float> logits;
    pass.logits(&logits);
    result.insert(result.end(), logits.begin(), logits.end());
  }
  return result;
}

}  // namespace cg
