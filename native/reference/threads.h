// A pool for loops over rows. Chunks are fixed by the caller; which thread takes one is chance and changes no result.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace cg::reference {

class Threads {
 public:
  /// `count` threads in all, the caller's included; 0: as many as there are cores.
  explicit Threads(int count);
  ~Threads();
  /// Flops below which a loop is not shared: waking a thread costs some 10 µs. Tests set it to 0.
  static inline double least_work = 4e5;
  int count() const { return int(workers_.size()) + 1; }

  /// Calls body(begin, end) for every chunk of [0, n). `work` is about how many flops all of it has: little work, and a call while the pool is taken by
  /// another queue, runs in the caller's thread. `body` must not throw and must not call the pool.
  template <class F>
  void run(int64_t n, int64_t chunk, double work, const F& body) {
    if (n <= 0) return;
    const int64_t chunks = (n + chunk - 1) / chunk;
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (workers_.empty() || chunks == 1 || work < least_work || !lock.try_lock()) {
      for (int64_t begin = 0; begin < n; begin += chunk) body(begin, begin + chunk < n ? begin + chunk : n);
      return;
    }
    const auto call = [](const void* context, int64_t begin, int64_t end) { (*static_cast<const F*>(context))(begin, end); };
    share({call, &body, n, chunk, chunks});
  }

 private:
  struct Job {
    void (*call)(const void*, int64_t, int64_t);
    const void* context;
    int64_t n, chunk, chunks;
  };
  void share(const Job&);
  bool take_chunk(uint32_t generation);
  void work();

  std::vector<std::thread> workers_;
  std::mutex mutex_;  // one job at a time
  Job job_{};
  /// Upper half: the job's number. Lower half: chunks not yet taken. A late sleeper sees another number or none left, and never touches a job that has ended.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<uint32_t> generation_{0};
  std::atomic<int32_t> unfinished_{0};
  std::atomic<bool> stop_{false};
};

/// A block of at least `floats` floats, aligned to 64 bytes, that belongs to the calling thread until its next call with the same `slot` (0 … 3).
float* scratch(int slot, int64_t floats);

}  // namespace cg::reference
