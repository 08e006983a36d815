// Tokens with loss spans: what a trie is made of.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace cg {

struct Model;

/// One rollout or scored text: tokens at absolute positions start, start + 1, …; spans [begin, end) of `ids` carry loss.
struct Sequence {
  std::vector<int32_t> ids;
  int64_t start = 0;
  std::vector<std::pair<int32_t, int32_t>> spans;
  float temperature = 1;

  /// Tokens that need a row: what comes after the last predictor of a loss token changes nothing. Without spans all of them.
  int64_t rows() const { return spans.empty() ? static_cast<int64_t>(ids.size()) : spans.back().second - 1; }

  int64_t loss_tokens() const {
    int64_t n = 0;
    for (const auto& [begin, end] : spans) n += end - begin;
    return n;
  }
};

/// Throws E_SHAPE, E_VOCABULARY or E_CONTEXT with what is wrong: ids of the vocabulary, spans in order and inside, temperature above 0, positions the model
/// has.
void check_sequence(const Model&, const Sequence&);

}  // namespace cg
