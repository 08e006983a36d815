#include "core/trie.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace cg {

int32_t TrieBuilder::find_child(int32_t parent, int32_t id, int32_t position) const {
  int32_t child = parent < 0 ? root_ : nodes_[static_cast<size_t>(parent)].child;
  while (child >= 0 && (nodes_[static_cast<size_t>(child)].id != id || nodes_[static_cast<size_t>(child)].position != position))
    child = nodes_[static_cast<size_t>(child)].next;
  return child;
}

int32_t TrieBuilder::add_child(int32_t parent, int32_t id, int32_t position) {
  const auto node = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({id, position, parent});
  int32_t& first = parent < 0 ? root_ : nodes_[static_cast<size_t>(parent)].child;
  int32_t& last = parent < 0 ? last_root_ : nodes_[static_cast<size_t>(parent)].last_child;
  if (first < 0) first = node;
  else nodes_[static_cast<size_t>(last)].next = node;
  last = node;
  return node;
}

int64_t TrieBuilder::new_rows(const Sequence& s) const {
  int32_t at = -1;
  const auto n = static_cast<size_t>(s.rows());
  for (size_t i = 0; i < n; ++i) {
    at = find_child(at, s.ids[i], static_cast<int32_t>(s.start + static_cast<int64_t>(i)));
    if (at < 0) return static_cast<int64_t>(n - i);
  }
  return 0;
}

void TrieBuilder::add(const Sequence& s) {
  const auto n = static_cast<size_t>(s.rows());
  std::vector<int32_t> path;
  path.reserve(n);
  int32_t at = -1;
  for (size_t i = 0; i < n; ++i) {
    const auto position = static_cast<int32_t>(s.start + static_cast<int64_t>(i));
    const int32_t child = find_child(at, s.ids[i], position);
    at = child >= 0 ? child : add_child(at, s.ids[i], position);
    path.push_back(at);
  }
  sequences_.push_back(&s);
  paths_.push_back(std::move(path));
}

TrieBatch TrieBuilder::build() const {
  TrieBatch b;
  const size_t n = nodes_.size();
  b.ids.resize(n), b.position.resize(n), b.first.resize(n), b.table.assign(n, -1), b.subtree_end.resize(n);
  std::vector<int32_t> row_of(n);

  // Depth first without recursion: a node's row is counted on the way down, its subtree's end on the way up.
  std::vector<int32_t> path;  // rows from the root to the current node
  int32_t rows = 0;
  int32_t node = root_;
  while (node >= 0) {
    const Node& at = nodes_[static_cast<size_t>(node)];
    const int32_t row = rows++;
    row_of[static_cast<size_t>(node)] = row;
    path.push_back(row);
    const auto r = static_cast<size_t>(row);
    b.ids[r] = at.id;
    b.position[r] = at.position;
    b.first[r] = at.position - static_cast<int32_t>(path.size()) + 1;
    if (at.child >= 0) {
      node = at.child;
      continue;
    }
    // A leaf: its path is the gather list of every row on it that has none yet.
    const auto list = static_cast<int32_t>(b.gather.size());
    b.gather.insert(b.gather.end(), path.begin(), path.end());
    for (size_t i = path.size(); i-- > 0 && b.table[static_cast<size_t>(path[i])] < 0;) b.table[static_cast<size_t>(path[i])] = list;
    int32_t up = node;
    node = -1;
    while (up >= 0 && node < 0) {
      b.subtree_end[static_cast<size_t>(path.back())] = rows;
      path.pop_back();
      node = nodes_[static_cast<size_t>(up)].next;
      up = nodes_[static_cast<size_t>(up)].parent;
    }
  }

  // Loss entries: (row of the predictor, sequence, target), ascending by row, then in order of the sequences.
  struct Entry {
    int32_t row, target;
    float temperature;
  };
  std::vector<Entry> entries;
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const Sequence& sequence = *sequences_[s];
    for (const auto& [begin, end] : sequence.spans)
      for (int32_t i = begin; i < end; ++i)
        entries.push_back({row_of[static_cast<size_t>(paths_[s][static_cast<size_t>(i - 1)])], sequence.ids[static_cast<size_t>(i)], sequence.temperature});
    b.last_row.push_back(paths_[s].empty() ? -1 : row_of[static_cast<size_t>(paths_[s].back())]);
  }
  std::vector<int32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) { return entries[static_cast<size_t>(x)].row < entries[static_cast<size_t>(y)].row; });
  b.entry_of.resize(entries.size());
  for (size_t e = 0; e < order.size(); ++e) {
    const Entry& entry = entries[static_cast<size_t>(order[e])];
    if (b.head_row.empty() || b.head_row.back() != entry.row) b.head_row.push_back(entry.row);
    b.entry_row.push_back(static_cast<int32_t>(b.head_row.size()) - 1);
    b.entry_target.push_back(entry.target);
    b.entry_temperature.push_back(entry.temperature);
    b.entry_of[static_cast<size_t>(order[e])] = static_cast<int32_t>(e);
  }
  return b;
}

TrieBatch build_trie(std::span<const Sequence* const> sequences) {
  TrieBuilder builder;
  for (const Sequence* s : sequences) builder.add(*s);
  return builder.build();
}

}  // namespace cg
