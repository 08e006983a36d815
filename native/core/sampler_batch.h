// One iteration's forward pass: which tokens become rows, and what is sampled from them.
#pragma once

#include <vector>

#include "core/kv_cache.h"

namespace cg {

struct SamplerStats {
  int64_t prefill_tokens = 0;  // context tokens computed
  int64_t shared_tokens = 0;   // context tokens found computed
  int64_t decode_tokens = 0;   // tokens sampled
  int64_t steps = 0;           // forward passes
};

/// A sequence that is being generated.
struct LiveSequence {
  std::vector<int32_t> tokens;  // context and what was generated
  size_t context = 0;           // tokens that came with the request
  std::vector<int32_t>
      path;  // node before position 0, then the nodes of tokens whose keys and values are stored (or will be by this batch); each retained once
  std::vector<int32_t> slots;  // of the nodes after the first
  const Adapter* adapter = nullptr;
  SampleParams params;
  uint64_t seed = 0, rollout = 0;
  std::vector<int32_t> seen;       // distinct tokens of the first `counted`, kept up only where the penalty needs them
  std::vector<bool> seen_already;  // [V]
  size_t counted = 0;

  bool complete() const { return slots.size() == tokens.size(); }
};

class SamplerBatch {
 public:
  SamplerBatch(Model&, Queue&, KvCache&);

  /// Extends the sequences' paths (each sequence's last token always gets a row, so that there is a state to sample from), runs the rows and samples one token
  /// for every sequence that is complete then. Sequences must be grouped by adapter. Returns, per sequence, whether it sampled; id and log-prob are then in
  /// `ids` and `logprobs`.
  const std::vector<bool>& run(const std::vector<LiveSequence*>&, SamplerStats*);

  std::vector<int32_t> ids;     // [sequences]
  std::vector<float> logprobs;  // [sequences]

 private:
  void clear();
  void add_rows(LiveSequence&, int64_t limit, SamplerStats*);
  void add_row(LiveSequence&, int32_t node, int32_t position);
  void add_sample(LiveSequence&);
  void compute(const std::vector<AdapterRun>&, int64_t rank);

  Model& model_;
  Queue& queue_;
  KvCache& cache_;
  Arena arena_;
  ListPack pack_;
  int64_t stamp_ = 0;
  std::vector<bool> sampled_;
  std::vector<int32_t> tokens_, position_, first_, table_, slot_, gather_;  // rows
  std::vector<int32_t> head_row_, sample_row_, seen_offset_, seen_;         // samples
  std::vector<int32_t> head_of_row_;
  std::vector<float> params_;
  std::vector<uint64_t> keys_;
  std::vector<int32_t> result_;
};

}  // namespace cg
