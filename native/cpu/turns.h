// Who may add to shared sums when: blocks of rows, taken by threads in ascending order, walk the tiles of their positions and add to what lies there. A block
// adds to a tile when every earlier block has left it behind, so each sum has its terms in the order of blocks, on any number of threads.
//
// A block waits for earlier ones only, and those were taken before it (Threads::run hands chunks out in order), so one of them can always go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

namespace cg::cpu {

class Turns {
 public:
  explicit Turns(int64_t blocks) : passed_(new std::atomic<int32_t>[size_t(blocks)]()) {}

  /// One block's walk.
  class Turn {
   public:
    Turn(Turns& turns, int64_t block) : turns_(turns), block_(block), first_(turns.over_.load(std::memory_order_acquire)) {}
    ~Turn() { pass(over); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// This block adds no more to tiles before `tile`. Tiles ascend, and may come twice.
    void go_to(int64_t tile) {
      tile_ = int32_t(tile);
      pass(tile_);
    }
    /// Returns when no earlier block will add to this block's tile.
    void wait() {
      for (int64_t b = first_; b < block_; ++b) {
        const std::atomic<int32_t>& passed = turns_.passed_[size_t(b)];
        int32_t tile = passed.load(std::memory_order_acquire);
        for (; tile <= tile_; tile = passed.load(std::memory_order_acquire)) passed.wait(tile, std::memory_order_acquire);
        if (b == first_ && tile == over) ++first_;
      }
      int64_t known = turns_.over_.load(std::memory_order_relaxed);
      while (known < first_ && !turns_.over_.compare_exchange_weak(known, first_, std::memory_order_acq_rel)) {}
    }

   private:
    void pass(int32_t tile) {
      turns_.passed_[size_t(block_)].store(tile, std::memory_order_release);
      turns_.passed_[size_t(block_)].notify_all();
    }
    static constexpr int32_t over = std::numeric_limits<int32_t>::max();
    Turns& turns_;
    const int64_t block_;
    int32_t tile_ = 0;
    int64_t first_;  // blocks before it are over
  };

 private:
  std::unique_ptr<std::atomic<int32_t>[]> passed_;  // by block: tiles below this one are left behind
  std::atomic<int64_t> over_{0};                    // blocks before this one are over
};

}  // namespace cg::cpu
