#include "reference_remote/lagging_queue.h"

#include <chrono>

namespace cg::reference_remote {

LaggingQueue::~LaggingQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LaggingQueue::push(std::function<void(Queue&)> op) {
  {
    const std::lock_guard lock(mutex_);
    ops_.push_back(std::move(op));
  }
  changed_.notify_all();
}

void LaggingQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ops_.empty() && !running_; });
}

void LaggingQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !ops_.empty(); });
    if (ops_.empty()) return;
    {
      const std::function<void(Queue&)> op = std::move(ops_.front());
      ops_.pop_front();
      running_ = true;
      lock.unlock();
      if (delay_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
      op(*inner_);
    }
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace cg::reference_remote
