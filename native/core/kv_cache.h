// Keys and values of everything that is being sampled, shared by prefix.
//
// A trie of tokens: a node is one token after its ancestors, under one adapter, and owns one slot of every layer's key/value store. Whoever needs the same
// prefix refers to the same nodes, so nothing is copied. Slots come in pages of page_size absolute positions: a branch continues in its parent's page while the
// place there is free, and otherwise begins a page of its own, whose earlier places stay empty.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/forward.h"

namespace cg {

class KvCache {
 public:
  explicit KvCache(Model&);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  using AdapterKey = std::pair<uint64_t, uint64_t>;  // id and version; (0, 0) is the base model

  /// The node before position 0.
  int32_t root(AdapterKey);
  /// The child with that token, or −1.
  int32_t find(int32_t parent, int32_t token) const;
  /// A new child with a slot of its own; grows the store when it is full (no op on it may be pending). Throws E_MEMORY.
  int32_t extend(Queue&, int32_t parent, int32_t token);

  void retain(int32_t node) { ++nodes_[static_cast<size_t>(node)].uses; }
  /// Drops one use; a node that nobody uses is forgotten. Paths are released from their end.
  void release(int32_t node);

  int32_t slot(int32_t node) const { return nodes_[static_cast<size_t>(node)].slot; }
  /// The row of the current batch that computes this node, if `stamp` is that batch's.
  int32_t& row(int32_t node) { return nodes_[static_cast<size_t>(node)].row; }
  int64_t& stamp(int32_t node) { return nodes_[static_cast<size_t>(node)].stamp; }

  const KvStore& store() const { return store_; }
  int64_t slots_in_use() const { return used_slots_; }

 private:
  struct Node {
    int32_t token = -1, parent = -1, child = -1, next = -1;
    int32_t position = -1, slot = -1, uses = 0, row = -1;
    int64_t stamp = -1;
    AdapterKey key;  // of a root
  };

  int32_t new_node();
  int32_t take_slot(Queue&, int32_t parent, int32_t position);
  void grow(Queue&);

  Model& model_;
  KvStore store_;
  BufferId buffer_ = 0;
  std::vector<Node> nodes_;
  std::vector<int32_t> free_nodes_;
  std::map<AdapterKey, int32_t> roots_;
  std::vector<uint64_t> pages_;  // which of its places are taken
  std::vector<int32_t> free_pages_;
  int64_t used_slots_ = 0;
};

}  // namespace cg
