#include "core/trie_pass.h"

#include <algorithm>

#include "core/error.h"

namespace cg {

TriePass::TriePass(std::shared_ptr<Model> model) : model_(std::move(model)), queue_(model_->backend->queue()), arena_(*model_->backend) {}

void TriePass::load(const TrieBatch& batch, int64_t rank) {
  pack(batch);
  place(batch, rank, nullptr, Keep::nothing);
}

void TriePass::load_to_train(const TrieBatch& batch, int64_t rank, const Trainee& trained, int64_t budget) {
  pack(batch);
  for (const Keep keep : {Keep::everything, Keep::all_but_mlp, Keep::layer_inputs}) {
    const int64_t bytes = Arena::measure(*model_->backend, [&](Arena& arena) { layout(arena, batch, rank, &trained, keep); });
    if (bytes <= budget || keep == Keep::layer_inputs) return place(batch, rank, &trained, keep);
  }
}

void TriePass::pack(const TrieBatch& batch) {
  pack_.clear();
  lists_ = {};
  lists_.ids = pack_.add(batch.ids);
  lists_.table = {pack_.add(batch.position), pack_.add(batch.first), pack_.add(batch.table), pack_.add(batch.gather), pack_.add(batch.subtree_end)};
  lists_.head_row = pack_.add(batch.head_row);
  entries_ = {pack_.add(batch.entry_row), pack_.add(batch.entry_target), pack_.add(batch.entry_temperature)};
  entry_of_ = batch.entry_of;
  rows_ = batch.rows();
}

void TriePass::layout(Arena& arena, const TrieBatch& batch, int64_t rank, const Trainee* trained, Keep keep) {
  const Backend& backend = *model_->backend;
  const ModelConfig& c = model_->config;
  const auto m = static_cast<int64_t>(batch.head_row.size());
  lists_room_ = pack_.take(arena);
  state_ = plan_forward(arena, *model_, rows_, m, rank, keep);
  if (trained) scratch_ = plan_backward(arena, *model_, rows_, m, *trained);
  logp_ = arena.take({batch.entries()});
  entropy_ = arena.take({batch.entries()});
  coefficient_ = arena.take({batch.entries()});
  dhead_ = arena.take({m, c.hidden});
  int64_t bytes = backend.workspace(Op::head_logp, m, c.vocab, c.hidden);
  if (trained)
    for (const Op op : {Op::head_backward, Op::head_weight_gradient}) bytes = std::max(bytes, backend.workspace(op, m, c.vocab, c.hidden));
  head_workspace_ = arena.take({(bytes + 3) / 4});
}

void TriePass::place(const TrieBatch& batch, int64_t rank, const Trainee* trained, Keep keep) {
  Backend& backend = *model_->backend;
  backend.wait(*queue_);  // the arena may move
  rope_ = model_->rope(*queue_, rows_ == 0 ? 1 : 1 + *std::max_element(batch.position.begin(), batch.position.end()));
  planned_bytes_ = arena_.plan([&](Arena& arena) { layout(arena, batch, rank, trained, keep); });
  pack_.upload(backend, *queue_, lists_room_);
  for (Tensor* t : {&lists_.ids, &lists_.table.position, &lists_.table.first, &lists_.table.table, &lists_.table.gather, &lists_.table.subtree_end,
                    &lists_.head_row, &entries_.row, &entries_.target, &entries_.temperature})
    *t = ListPack::in(lists_room_, *t);
}

void TriePass::forward(const Adapter* adapter) {
  const AdapterRun run{0, rows_, adapter};
  cg::forward(*queue_, *model_, lists_, std::span(&run, 1), rope_, nullptr, state_);
}

void TriePass::log_probs(std::vector<float>* logp, std::vector<float>* entropy) {
  Backend& backend = *model_->backend;
  const size_t n = entry_of_.size();
  backend.head_logp(*queue_, state_.head, model_->head, model_->real_vocab, entries_, logp_, entropy ? entropy_ : Tensor{}, head_workspace_);
  std::vector<float> by_entry(n);
  const auto fetch = [&](Tensor from, std::vector<float>* to) {
    backend.download(*queue_, from, by_entry.data());
    to->resize(n);
    for (size_t i = 0; i < n; ++i) (*to)[i] = by_entry[static_cast<size_t>(entry_of_[i])];
  };
  fetch(logp_, logp);
  if (entropy) fetch(entropy_, entropy);
}

void TriePass::logits(std::vector<float>* out) {
  Backend& backend = *model_->backend;
  const int64_t m = state_.head.shape[0], v = model_->config.vocab;
  Arena arena(backend);
  Tensor y, workspace;
  arena.plan([&](Arena& a) {
    y = a.take({m, v});
    workspace = a.take({(backend.workspace(Op::matmul, m, v, model_->config.hidden) + 3) / 4});
  });
  backend.matmul(*queue_, state_.head, model_->head, Weight{}, y, false, workspace);
  out->resize(static_cast<size_t>(m * v));
  backend.download(*queue_, y, out->data());
}

void TriePass::backward(const Trainee& trained, std::span<const float> coefficient, Tensor gradient) {
  Backend& backend = *model_->backend;
  CG_INVARIANT(coefficient.size() == entry_of_.size());
  std::vector<float> by_entry(coefficient.size());
  for (size_t i = 0; i < by_entry.size(); ++i) by_entry[static_cast<size_t>(entry_of_[i])] = coefficient[i];
  backend.upload(*queue_, by_entry.data(), coefficient_);
  backend.head_backward(*queue_, state_.head, model_->head, model_->real_vocab, entries_, coefficient_, dhead_, head_workspace_);
  const auto sink = trained.gradient(*queue_, state_, scratch_, gradient);
  sink->head(state_.head, entries_, coefficient_, head_workspace_);
  const AdapterRun run{0, rows_, trained.adapter()};
  cg::backward(*queue_, *model_, lists_, std::span(&run, 1), rope_, state_, dhead_, scratch_, *sink);
}

}  // namespace cg
