#include "core/sampler_batch.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace cg {
namespace {

constexpr int64_t prefill_rows = 2048;  // of one batch; longer contexts take several, which changes no bit

}  // namespace

SamplerBatch::SamplerBatch(Model& model, Queue& queue, KvCache& cache) : model_(model), queue_(queue), cache_(cache), arena_(*model.backend) {}

void SamplerBatch::clear() {
  for (auto* list : {&tokens_, &position_, &first_, &table_, &slot_, &gather_, &head_row_, &sample_row_, &seen_offset_, &seen_, &head_of_row_}) list->clear();
  params_.clear();
  keys_.clear();
  seen_offset_.push_back(0);
  ++stamp_;
}

const std::vector<bool>& SamplerBatch::run(const std::vector<LiveSequence*>& sequences, SamplerStats* stats) {
  clear();
  ids.assign(sequences.size(), -1);
  logprobs.assign(sequences.size(), 0);
  sampled_.assign(sequences.size(), false);

  // Decoding sequences always take part; contexts share what room is left, in order.
  int64_t room = prefill_rows;
  for (const LiveSequence* s : sequences) room -= s->tokens.size() - s->slots.size() == 1;
  std::vector<AdapterRun> runs;
  int64_t rank = 0;
  for (LiveSequence* s : sequences) {
    if (runs.empty() || runs.back().adapter != s->adapter) {
      runs.push_back({static_cast<int64_t>(tokens_.size()), 0, s->adapter});
      if (s->adapter) rank = std::max(rank, s->adapter->config().rank);
    }
    const bool decoding = s->tokens.size() - s->slots.size() == 1;
    const auto before = static_cast<int64_t>(tokens_.size());
    add_rows(*s, decoding ? 1 : std::max<int64_t>(room, 0), stats);
    if (!decoding) room -= static_cast<int64_t>(tokens_.size()) - before;
    runs.back().end = static_cast<int64_t>(tokens_.size());
    if (s->complete()) add_sample(*s);
  }
  compute(runs, rank);

  size_t m = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (!sequences[i]->complete()) continue;
    sampled_[i] = true;
    ids[i] = result_[m];
    std::memcpy(&logprobs[i], &result_[sample_row_.size() + m], 4);
    ++m;
  }
  stats->decode_tokens += static_cast<int64_t>(m);
  ++stats->steps;
  return sampled_;
}

// Walks on from the end of the path: nodes that exist are taken over, others become rows while `limit` lasts.
void SamplerBatch::add_rows(LiveSequence& s, int64_t limit, SamplerStats* stats) {
  const auto first_row = tokens_.size();
  while (!s.complete()) {
    const size_t at = s.slots.size();
    const bool last = at + 1 == s.tokens.size();
    int32_t node = cache_.find(s.path.back(), s.tokens[at]);
    const bool known = node >= 0;
    const bool in_batch = known && cache_.stamp(node) == stamp_;
    if (!known || (last && !in_batch)) {
      if (limit == 0) break;
      --limit;
      if (!known) node = cache_.extend(queue_, s.path.back(), s.tokens[at]);
      add_row(s, node, static_cast<int32_t>(at));
      stats->prefill_tokens += at < s.context;
    } else {
      stats->shared_tokens += at < s.context;
    }
    cache_.retain(node);
    s.path.push_back(node);
    s.slots.push_back(cache_.slot(node));
  }
  if (tokens_.size() == first_row) return;
  const auto list = static_cast<int32_t>(gather_.size());
  gather_.insert(gather_.end(), s.slots.begin(), s.slots.end());
  std::fill(table_.begin() + static_cast<std::ptrdiff_t>(first_row), table_.end(), list);
}

void SamplerBatch::add_row(LiveSequence& s, int32_t node, int32_t position) {
  cache_.stamp(node) = stamp_;
  cache_.row(node) = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(s.tokens[static_cast<size_t>(position)]);
  position_.push_back(position);
  first_.push_back(0);
  table_.push_back(-1);
  slot_.push_back(cache_.slot(node));
  head_of_row_.push_back(-1);
}

void SamplerBatch::add_sample(LiveSequence& s) {
  const int32_t row = cache_.row(s.path.back());
  int32_t& head = head_of_row_[static_cast<size_t>(row)];
  if (head < 0) {
    head = static_cast<int32_t>(head_row_.size());
    head_row_.push_back(row);
  }
  sample_row_.push_back(head);
  const SampleParams& p = s.params;
  params_.insert(params_.end(), {p.temperature, p.top_k, p.top_p, p.min_p, p.repetition_penalty, p.reserved});
  keys_.insert(keys_.end(), {s.seed, s.rollout, static_cast<uint64_t>(s.tokens.size())});
  if (p.repetition_penalty != 1) {
    if (s.seen_already.empty()) s.seen_already.resize(static_cast<size_t>(model_.config.vocab));
    for (; s.counted < s.tokens.size(); ++s.counted) {
      const int32_t id = s.tokens[s.counted];
      if (s.seen_already[static_cast<size_t>(id)]) continue;
      s.seen_already[static_cast<size_t>(id)] = true;
      s.seen.push_back(id);
    }
    seen_.insert(seen_.end(), s.seen.begin(), s.seen.end());
  }
  seen_offset_.push_back(static_cast<int32_t>(seen_.size()));
}

void SamplerBatch::compute(const std::vector<AdapterRun>& runs, int64_t rank) {
  Backend& backend = *model_.backend;
  const ModelConfig& c = model_.config;
  const auto rows = static_cast<int64_t>(tokens_.size()), heads = static_cast<int64_t>(head_row_.size()), m = static_cast<int64_t>(sample_row_.size());
  const RopeTensors rope = model_.rope(queue_, rows == 0 ? 1 : 1 + *std::max_element(position_.begin(), position_.end()));

  pack_.clear();
  ForwardLists lists;
  lists.ids = pack_.add(tokens_);
  lists.table = {pack_.add(position_), pack_.add(first_), pack_.add(table_), pack_.add(gather_), Tensor{}};
  lists.slot = pack_.add(slot_);
  lists.head_row = pack_.add(head_row_);
  SampleRows samples;
  samples.row = pack_.add(sample_row_);
  samples.params = pack_.add(std::span<const float>(params_), DType::f32, {m, SampleParams::fields});
  samples.keys = pack_.add(std::span<const uint64_t>(keys_), DType::u64, {m, 3});
  samples.seen_offset = pack_.add(seen_offset_);
  samples.seen = pack_.add(seen_);

  Tensor room, out, workspace;
  ForwardState state;
  arena_.plan([&](Arena& arena) {
    room = pack_.take(arena);
    state = plan_forward(arena, model_, rows, heads, rank, Keep::nothing);
    out = arena.take({2, m}, DType::i32);  // ids, then the bits of the log-probs
    workspace = arena.take({(backend.workspace(Op::sample, m, c.vocab, c.hidden) + 3) / 4});
  });
  pack_.upload(backend, queue_, room);
  for (Tensor* t : {&lists.ids, &lists.table.position, &lists.table.first, &lists.table.table, &lists.table.gather, &lists.slot, &lists.head_row, &samples.row,
                    &samples.params, &samples.keys, &samples.seen_offset, &samples.seen})
    *t = ListPack::in(room, *t);

  forward(queue_, model_, lists, runs, rope, &cache_.store(), state);
  result_.resize(static_cast<size_t>(2 * m));
  if (m == 0) return backend.wait(queue_);
  Tensor drawn = out.rows(0, 1), logp = out.rows(1, 2);
  for (Tensor* t : {&drawn, &logp}) t->rank = 1, t->shape[0] = m, t->strides[0] = 1;
  logp.dtype = DType::f32;
  backend.sample(queue_, state.head, model_.head, model_.real_vocab, samples, drawn, logp, workspace);
  backend.download(queue_, out, result_.data());
}

}  // namespace cg
