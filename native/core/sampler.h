// Continuous batching: one worker thread that, again and again, runs one forward pass over every token that still lacks its keys and values, and samples one
// token for every sequence whose context is complete.
//
// A request's tokens do not depend on what it is batched with: ops give a row the same bits in every batch, and draws are keyed by (seed, rollout, position).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/sampler_batch.h"

namespace cg {

struct GenerateRequest {
  std::vector<int32_t> ids;                // the whole context
  std::shared_ptr<const Adapter> adapter;  // null: the base model
  SampleParams params;
  std::vector<int32_t> stop_ids;
  int64_t max_tokens = 0;
  uint64_t seed = 0, rollout = 0;
  std::string session;
  std::shared_ptr<const std::atomic<bool>> cancelled;  // looked at between iterations; may be null
};

struct Generation {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  bool stopped = false;           // by a stop id; else maxTokens or the context's end
  std::string error_code, error;  // not empty: the request failed
};

class Sampler {
 public:
  using Done = std::function<void(Generation)>;

  Sampler(std::shared_ptr<Model>, int64_t max_batch);
  /// Closes.
  ~Sampler();

  /// Checks the request (E_VOCABULARY, E_CONTEXT, E_SHAPE, E_ADAPTER, E_SESSION) and queues it; `done` is called once, on the worker thread.
  void submit(GenerateRequest, Done);
  /// Forgets a session's keys and values (when its request has ended, if one runs).
  void release(const std::string& session);
  SamplerStats stats() const;
  /// Ends the worker; requests that have not ended fail with E_CANCELLED.
  void close();

 private:
  struct Job {
    GenerateRequest request;
    Done done;
  };
  struct Session {
    std::vector<int32_t> path;  // retained nodes, root first
    bool busy = false, release = false;
  };
  struct Running {
    Job job;
    LiveSequence sequence{};
    Generation result{};
    uint64_t adapter_version = 0;
  };

  void work();
  void take_orders();
  void drop_cancelled();
  void admit();
  void iterate();
  bool accept(Running&, int32_t id, float logp);
  void end(std::unique_ptr<Running>);
  void fail(std::unique_ptr<Running>, const std::string& code, const std::string& message);
  std::unique_ptr<Running> take(size_t index);
  void fail_all(const std::string& code, const std::string& message);
  void release_path(std::vector<int32_t>&);

  std::shared_ptr<Model> model_;
  const size_t max_batch_;
  std::unique_ptr<Queue> queue_;
  KvCache cache_;
  SamplerBatch batch_;

  // The worker's own.
  std::deque<Job> waiting_;
  std::vector<std::unique_ptr<Running>> running_;

  // Shared, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job> submitted_;
  std::vector<std::vector<int32_t>> garbage_;  // paths of released sessions
  std::map<std::string, Session> sessions_;
  SamplerStats stats_;
  bool closing_ = false;

  std::thread worker_;
};

}  // namespace cg
