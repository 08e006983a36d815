// An ordered stream of ops on a thread of its own, each some microseconds late.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/backend.h"

namespace cg::reference_remote {

class LaggingQueue final : public Queue {
 public:
  /// `inner`: the reference backend's queue that the ops run on; it keeps their first error.
  LaggingQueue(std::unique_ptr<Queue> inner, int delay_us) : inner_(std::move(inner)), delay_us_(delay_us), thread_([this] { work(); }) {}
  /// Runs what is left.
  ~LaggingQueue() override;

  /// Returns at once; `op` runs after all earlier ones.
  void push(std::function<void(Queue& inner)> op);
  /// Blocks until every op pushed so far has run.
  void drain();
  Queue& inner() { return *inner_; }

 private:
  void work();
  std::unique_ptr<Queue> inner_;
  const int delay_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void(Queue&)>> ops_;
  bool running_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace cg::reference_remote
