#include "core/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cg {
namespace {

void check(const Model& model, const GenerateRequest& r) {
  const auto fail = [](const std::string& what) { throw Error("E_SHAPE", what); };
  for (const int32_t id : r.ids) model.check_id(id);
  if (r.ids.empty()) fail("a context must have at least one token");
  if (static_cast<int64_t>(r.ids.size()) >= model.config.max_positions)
    throw Error("E_CONTEXT",
                "a context of " + std::to_string(r.ids.size()) + " tokens leaves no room in the model's " + std::to_string(model.config.max_positions));
  if (r.max_tokens < 1) fail("maxTokens must be at least 1");
  const SampleParams& p = r.params;
  if (!(p.temperature >= 0) || !std::isfinite(p.temperature)) fail("temperature must be 0 (greedy) or above");
  if (!(p.top_k >= 0) || p.top_k != std::floor(p.top_k)) fail("topK must be 0 (off) or a positive integer");
  if (!(p.top_p > 0 && p.top_p <= 1)) fail("topP must be above 0 and at most 1 (off)");
  if (!(p.min_p >= 0 && p.min_p <= 1)) fail("minP must be between 0 (off) and 1");
  if (!(p.repetition_penalty > 0) || !std::isfinite(p.repetition_penalty)) fail("repetitionPenalty must be above 0");
  if (r.adapter && r.adapter->model().get() != &model) throw Error("E_ADAPTER", "the adapter belongs to another model");
}

uint64_t version_of(const Adapter* adapter) { return adapter ? adapter->version.load() : 0; }

}  // namespace

Sampler::Sampler(std::shared_ptr<Model> model, int64_t max_batch)
    : model_(std::move(model)),
      max_batch_(static_cast<size_t>(std::max<int64_t>(max_batch, 1))),
      queue_(model_->backend->queue()),
      cache_(*model_),
      batch_(*model_, *queue_, cache_) {
  worker_ = std::thread([this] { work(); });
}

Sampler::~Sampler() { close(); }

void Sampler::submit(GenerateRequest request, Done done) {
  check(*model_, request);
  const std::lock_guard lock(mutex_);
  if (closing_) throw Error("E_CANCELLED", "the sampler is closed");
  Session& session = sessions_[request.session];
  if (session.busy) throw Error("E_SESSION", "session " + request.session + " has a request that has not ended");
  session.busy = true;
  session.release = false;
  submitted_.push_back({std::move(request), std::move(done)});
  wake_.notify_one();
}

void Sampler::release(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return;
  if (found->second.busy) {
    found->second.release = true;
    return;
  }
  garbage_.push_back(std::move(found->second.path));
  sessions_.erase(found);
  wake_.notify_one();
}

SamplerStats Sampler::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Sampler::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    wake_.notify_one();
  }
  if (worker_.joinable()) worker_.join();
}

void Sampler::work() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closing_ || !submitted_.empty() || !garbage_.empty() || !running_.empty() || !waiting_.empty(); });
      take_orders();
      if (closing_) break;
    }
    drop_cancelled();
    admit();
    if (running_.empty()) continue;
    try {
      iterate();
    } catch (const Error& error) {
      fail_all(error.code(), error.what());
    } catch (const std::exception& error) {
      fail_all("E_MEMORY", error.what());
    }
  }
  fail_all("E_CANCELLED", "the sampler was closed");
}

// New requests, and what released sessions held, since the last iteration; the lock is held.
void Sampler::take_orders() {
  for (Job& job : submitted_) waiting_.push_back(std::move(job));
  submitted_.clear();
  for (std::vector<int32_t>& path : garbage_) release_path(path);
  garbage_.clear();
}

void Sampler::drop_cancelled() {
  const auto cancelled = [](const Job& job) { return job.request.cancelled && job.request.cancelled->load(); };
  for (size_t i = running_.size(); i-- > 0;)
    if (cancelled(running_[i]->job)) fail(take(i), "E_CANCELLED", "cancelled");
  for (size_t i = waiting_.size(); i-- > 0;) {
    if (!cancelled(waiting_[i])) continue;
    auto r = std::make_unique<Running>(std::move(waiting_[i]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    fail(std::move(r), "E_CANCELLED", "cancelled");
  }
}

void Sampler::admit() {
  while (running_.size() < max_batch_ && !waiting_.empty()) {
    auto r = std::make_unique<Running>(std::move(waiting_.front()));
    waiting_.pop_front();
    const GenerateRequest& request = r->job.request;
    r->adapter_version = version_of(request.adapter.get());
    LiveSequence& s = r->sequence;
    s.tokens = request.ids;
    s.context = request.ids.size();
    s.adapter = request.adapter.get();
    s.params = request.params;
    s.seed = request.seed;
    s.rollout = request.rollout;

    // What is known of the context is taken over before the session lets go of its last turn.
    const int32_t root = cache_.root(request.adapter ? KvCache::AdapterKey{request.adapter->id, r->adapter_version} : KvCache::AdapterKey{0, 0});
    cache_.retain(root);
    s.path.push_back(root);
    for (size_t i = 0; i + 1 < s.tokens.size(); ++i) {
      const int32_t node = cache_.find(s.path.back(), s.tokens[i]);
      if (node < 0) break;
      cache_.retain(node);
      s.path.push_back(node);
      s.slots.push_back(cache_.slot(node));
    }
    const std::lock_guard lock(mutex_);
    stats_.shared_tokens += static_cast<int64_t>(s.slots.size());
    release_path(sessions_[request.session].path);
    running_.push_back(std::move(r));
  }
}

void Sampler::iterate() {
  std::stable_sort(running_.begin(), running_.end(), [](const auto& a, const auto& b) {
    const uint64_t x = a->sequence.adapter ? a->sequence.adapter->id : 0, y = b->sequence.adapter ? b->sequence.adapter->id : 0;
    return x < y;
  });
  std::vector<LiveSequence*> sequences;
  for (const auto& r : running_) sequences.push_back(&r->sequence);
  SamplerStats stats{};
  const std::shared_lock weights(model_->weights);
  if (model_->in_training) throw Error("E_IN_TRAINING", "all weights of this model are being trained: sample from a checkpoint of it");
  const std::vector<bool>& sampled = batch_.run(sequences, &stats);
  {
    const std::lock_guard lock(mutex_);
    stats_.prefill_tokens += stats.prefill_tokens;
    stats_.shared_tokens += stats.shared_tokens;
    stats_.decode_tokens += stats.decode_tokens;
    stats_.steps += stats.steps;
  }
  for (size_t i = running_.size(); i-- > 0;) {
    Running& r = *running_[i];
    if (r.adapter_version % 2 != 0 || version_of(r.sequence.adapter) != r.adapter_version)
      fail(take(i), "E_ADAPTER", "the adapter was updated while sampling from it: sample from a snapshot");
    else if (sampled[i] && !std::isfinite(batch_.logprobs[i]))
      fail(take(i), "E_NAN", "the model gives no finite log-prob after " + std::to_string(r.sequence.tokens.size()) + " tokens");
    else if (sampled[i] && accept(r, batch_.ids[i], batch_.logprobs[i])) end(take(i));
  }
}

// Takes a sampled token; true when it was the last one.
bool Sampler::accept(Running& r, int32_t id, float logp) {
  const GenerateRequest& request = r.job.request;
  r.sequence.tokens.push_back(id);
  r.result.ids.push_back(id);
  r.result.logprobs.push_back(logp);
  r.result.stopped = std::find(request.stop_ids.begin(), request.stop_ids.end(), id) != request.stop_ids.end();
  return r.result.stopped || static_cast<int64_t>(r.result.ids.size()) >= request.max_tokens ||
         static_cast<int64_t>(r.sequence.tokens.size()) >= model_->config.max_positions;
}

std::unique_ptr<Sampler::Running> Sampler::take(size_t index) {
  auto r = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  return r;
}

// Hands out the result; the path stays with the session for its next turn. `done` is called without the lock.
void Sampler::end(std::unique_ptr<Running> r) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(r->job.request.session);
    Session& session = found->second;
    if (!r->sequence.path.empty()) session.path.swap(r->sequence.path);
    release_path(r->sequence.path);
    session.busy = false;
    if (session.release) {
      release_path(session.path);
      sessions_.erase(found);
    }
  }
  r->job.done(std::move(r->result));
}

void Sampler::fail(std::unique_ptr<Running> r, const std::string& code, const std::string& message) {
  r->result = Generation{};
  r->result.error_code = code;
  r->result.error = message;
  end(std::move(r));
}

// After a failed pass nothing that it touched can be trusted: its sequences leave nothing for their sessions.
void Sampler::fail_all(const std::string& code, const std::string& message) {
  for (Job& job : waiting_) running_.push_back(std::make_unique<Running>(std::move(job)));
  waiting_.clear();
  while (!running_.empty()) {
    auto r = take(running_.size() - 1);
    release_path(r->sequence.path);
    fail(std::move(r), code, message);
  }
}

void Sampler::release_path(std::vector<int32_t>& path) {
  while (!path.empty()) {
    cache_.release(path.back());
    path.pop_back();
  }
}

}  // namespace cg
