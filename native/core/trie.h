// Sequences that share prefixes as one batch of distinct tokens.
//
// Rows are the trie's tokens depth first, children in order of their lowest sequence: the canonical order of numerics.md, so neither the storage nor the
// gradients depend on how a caller packed anything. A row's keys are its ancestors, found by absolute position through one gather list per leaf.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sequence.h"

namespace cg {

/// A batch as lists. R rows, M head rows (predictors of some loss token), E loss entries.
struct TrieBatch {
  std::vector<int32_t> ids, position, first, table, subtree_end;  // [R] each, as in AttentionTable; slot = row
  std::vector<int32_t> gather;                                    // rows by position, one list per leaf
  std::vector<int32_t> head_row;                                  // [M] rows, ascending
  std::vector<int32_t> entry_row;                                 // [E] index into head_row, ascending
  std::vector<int32_t> entry_target;                              // [E]
  std::vector<float> entry_temperature;                           // [E]
  std::vector<int32_t> entry_of;                                  // [E] entry of each loss token, sequences in order and their tokens in order
  std::vector<int32_t> last_row;                                  // [sequences] each sequence's last row

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  int64_t entries() const { return static_cast<int64_t>(entry_row.size()); }
};

/// Grows a trie sequence by sequence; sequences that start at different positions share nothing.
class TrieBuilder {
 public:
  /// Rows that adding the sequence would bring.
  int64_t new_rows(const Sequence&) const;
  void add(const Sequence&);
  int64_t rows() const { return static_cast<int64_t>(nodes_.size()); }
  TrieBatch build() const;

 private:
  struct Node {
    int32_t id, position, parent;                    // parent: −1 at a root
    int32_t child = -1, last_child = -1, next = -1;  // children in order of creation, which is order of lowest sequence
  };

  int32_t find_child(int32_t parent, int32_t id, int32_t position) const;
  int32_t add_child(int32_t parent, int32_t id, int32_t position);

  std::vector<Node> nodes_;
  int32_t root_ = -1, last_root_ = -1;
  std::vector<const Sequence*> sequences_;
  std::vector<std::vector<int32_t>> paths_;  // nodes of each sequence
};

TrieBatch build_trie(std::span<const Sequence* const> sequences);

}  // namespace cg
