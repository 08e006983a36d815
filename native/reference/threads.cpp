#include "reference/threads.h"

#include <cstdlib>
#include <new>

namespace cg::reference {

Threads::Threads(int count) {
  if (count <= 0) count = int(std::thread::hardware_concurrency());
  for (int i = 1; i < count; ++i) workers_.emplace_back([this] { work(); });
}

Threads::~Threads() {
  stop_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void Threads::share(const Job& job) {
  job_ = job;
  unfinished_.store(int32_t(job.chunks), std::memory_order_relaxed);
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  ticket_.store(uint64_t(generation) << 32 | uint32_t(job.chunks), std::memory_order_release);
  generation_.store(generation, std::memory_order_release);
  generation_.notify_all();
  while (take_chunk(generation)) {}
  for (int32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) unfinished_.wait(left, std::memory_order_acquire);
}

bool Threads::take_chunk(uint32_t generation) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  do {
    if (uint32_t(ticket >> 32) != generation || uint32_t(ticket) == 0) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel));
  const int64_t begin = (job_.chunks - int64_t(uint32_t(ticket))) * job_.chunk, end = begin + job_.chunk;
  job_.call(job_.context, begin, end < job_.n ? end : job_.n);
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  return true;
}

void Threads::work() {
  for (uint32_t seen = 0;;) {
    generation_.wait(seen, std::memory_order_acquire);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    while (take_chunk(seen)) {}
  }
}

namespace {
struct Block {
  float* data = nullptr;
  int64_t floats = 0;
  ~Block() { std::free(data); }
};
thread_local Block blocks[4];
}  // namespace

float* scratch(int slot, int64_t floats) {
  Block& block = blocks[slot];
  if (block.floats < floats) {
    std::free(block.data);
    block = {nullptr, 0};
    const int64_t bytes = (floats * 4 + 4095) / 4096 * 4096;
    block.data = static_cast<float*>(std::aligned_alloc(64, size_t(bytes)));
    if (block.data == nullptr) throw std::bad_alloc();
    block.floats = bytes / 4;
  }
  return block.data;
}

}  // namespace cg::reference
