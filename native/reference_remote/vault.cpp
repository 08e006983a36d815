#include "reference_remote/vault.h"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

namespace cg::reference_remote {

namespace {
size_t whole_pages(int64_t bytes) {
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  return (size_t(bytes) + page - 1) / page * page;
}
}  // namespace

Vault::~Vault() {
  for (const Block& block : blocks_) munmap(block.data, block.bytes);
}

void* Vault::allocate(int64_t bytes) {
  const size_t size = whole_pages(bytes);
  void* data = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  blocks_.push_back({data, size});
  return data;
}

void Vault::release(void* data, int64_t) {
  const std::lock_guard lock(mutex_);
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.data == data; });
  CG_INVARIANT(block != blocks_.end());
  munmap(block->data, block->bytes);
  blocks_.erase(block);
}

void Vault::protect(bool accessible) {
  const std::lock_guard lock(mutex_);
  for (const Block& block : blocks_) CG_INVARIANT(mprotect(block.data, block.bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

}  // namespace cg::reference_remote
