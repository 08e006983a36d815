#include "core/kv_cache.h"

#include "core/error.h"

namespace cg {
namespace {

constexpr size_t first_pages = 64;
static_assert(page_size == 64, "a page's places are the bits of one word");

// A store of values, [slots, NK, D].
Tensor values_tensor(BufferId buffer, int64_t offset, int64_t slots, const ModelConfig& c) {
  Tensor t;
  t.buffer = buffer;
  t.offset = offset;
  t.rank = 3;
  t.shape = {slots, c.kv_heads, c.head_dim, 1};
  t.strides = {c.kv_size(), c.head_dim, 1, 1};
  return t;
}

// A store of keys by pages, [pages, NK, D, page_size]: attention reads them where they lie.
Tensor keys_tensor(BufferId buffer, int64_t offset, int64_t pages, const ModelConfig& c) {
  Tensor t;
  t.buffer = buffer;
  t.offset = offset;
  t.rank = 4;
  t.shape = {pages, c.kv_heads, c.head_dim, page_size};
  t.strides = {c.kv_size() * page_size, c.head_dim * page_size, page_size, 1};
  return t;
}

}  // namespace

KvCache::KvCache(Model& model) : model_(model) {}

KvCache::~KvCache() {
  if (buffer_) model_.backend->release(buffer_);
}

int32_t KvCache::new_node() {
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  const int32_t node = free_nodes_.back();
  free_nodes_.pop_back();
  nodes_[static_cast<size_t>(node)] = Node{};
  return node;
}

int32_t KvCache::root(AdapterKey key) {
  const auto found = roots_.find(key);
  if (found != roots_.end()) return found->second;
  const int32_t node = new_node();
  nodes_[static_cast<size_t>(node)].key = key;
  roots_.emplace(key, node);
  return node;
}

int32_t KvCache::find(int32_t parent, int32_t token) const {
  int32_t child = nodes_[static_cast<size_t>(parent)].child;
  while (child >= 0 && nodes_[static_cast<size_t>(child)].token != token) child = nodes_[static_cast<size_t>(child)].next;
  return child;
}

int32_t KvCache::extend(Queue& queue, int32_t parent, int32_t token) {
  const int32_t position = nodes_[static_cast<size_t>(parent)].position + 1;
  const int32_t slot = take_slot(queue, parent, position);
  const int32_t node = new_node();
  Node& n = nodes_[static_cast<size_t>(node)];
  Node& p = nodes_[static_cast<size_t>(parent)];
  n.token = token;
  n.parent = parent;
  n.position = position;
  n.slot = slot;
  n.next = p.child;
  p.child = node;
  return node;
}

int32_t KvCache::take_slot(Queue& queue, int32_t parent, int32_t position) {
  const auto place = static_cast<int32_t>(position % page_size);
  const int32_t beside = nodes_[static_cast<size_t>(parent)].slot;
  int32_t page = beside >= 0 && place > 0 ? beside / static_cast<int32_t>(page_size) : -1;
  if (page < 0 || pages_[static_cast<size_t>(page)] >> place & 1) {
    if (free_pages_.empty()) grow(queue);
    page = free_pages_.back();
    free_pages_.pop_back();
  }
  pages_[static_cast<size_t>(page)] |= uint64_t{1} << place;
  ++used_slots_;
  return page * static_cast<int32_t>(page_size) + place;
}

void KvCache::release(int32_t node) {
  Node& n = nodes_[static_cast<size_t>(node)];
  CG_INVARIANT(n.uses > 0);
  if (--n.uses > 0) return;
  CG_INVARIANT(n.child < 0);
  if (n.parent < 0) {
    roots_.erase(n.key);
  } else {
    int32_t* link = &nodes_[static_cast<size_t>(n.parent)].child;
    while (*link != node) link = &nodes_[static_cast<size_t>(*link)].next;
    *link = n.next;
    const auto page = static_cast<size_t>(n.slot / page_size);
    pages_[page] &= ~(uint64_t{1} << (n.slot % page_size));
    --used_slots_;
    if (pages_[page] == 0) free_pages_.push_back(static_cast<int32_t>(page));
  }
  free_nodes_.push_back(node);
}

// Twice the pages in a new buffer; slots keep their numbers.
void KvCache::grow(Queue& queue) {
  Backend& backend = *model_.backend;
  const ModelConfig& c = model_.config;
  const size_t old_pages = pages_.size(), pages = old_pages == 0 ? first_pages : 2 * old_pages;
  const auto slots = static_cast<int64_t>(pages) * page_size, old_slots = static_cast<int64_t>(old_pages) * page_size;
  const int64_t bytes = slots * c.kv_size() * 4;
  const BufferId buffer = backend.arena(2 * c.layers * bytes);
  KvStore store;
  for (int64_t l = 0; l < c.layers; ++l) {
    store.k.push_back(keys_tensor(buffer, 2 * l * bytes, static_cast<int64_t>(pages), c));
    store.v.push_back(values_tensor(buffer, (2 * l + 1) * bytes, slots, c));
  }
  if (old_pages > 0) {
    for (size_t l = 0; l < store.k.size(); ++l) {
      backend.copy(queue, store_.k[l], store.k[l].rows(0, static_cast<int64_t>(old_pages)));
      backend.copy(queue, store_.v[l], store.v[l].rows(0, old_slots));
    }
    backend.wait(queue);
    backend.release(buffer_);
  }
  buffer_ = buffer;
  store_ = store;
  pages_.resize(pages, 0);
  for (size_t page = pages; page-- > old_pages;) free_pages_.push_back(static_cast<int32_t>(page));
}

}  // namespace cg
