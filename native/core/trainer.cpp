#include "core/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <shared_mutex>

#include "core/error.h"
#include "core/train_pass.h"

namespace cg {
namespace {

void check_request(const Model& model, const StepRequest& request) {
  const auto fail = [](const std::string& what) { throw Error("E_SHAPE", what); };
  std::vector<int64_t> indices;
  for (const TrainGroup& group : request.groups) {
    if (group.index < 0) fail("a group's index is negative");
    indices.push_back(group.index);
    for (size_t i = 0; i < group.sequences.size(); ++i) {
      const TrainSequence& s = group.sequences[i];
      check_sequence(model, s.sequence);
      const auto n = static_cast<size_t>(s.sequence.loss_tokens()), spans = s.sequence.spans.size();
      const std::string what = "group " + std::to_string(group.index) + ", sequence " + std::to_string(i) + ": ";
      const auto expect = [&](const char* name, size_t size, size_t wanted, const char* unit) {
        if (size != 0 && size != wanted) fail(what + name + " has " + std::to_string(size) + " values for " + std::to_string(wanted) + " " + unit);
      };
      expect("old", s.old.size(), n, "loss tokens");
      expect("ref", s.reference.size(), n, "loss tokens");
      expect("advantages", s.advantage.size(), spans, "spans");
      expect("weights", s.weight.size(), spans, "spans");
      if (request.policy && s.advantage.empty() && spans > 0) fail(what + "a policy loss needs advantages, one per span");
    }
  }
  std::sort(indices.begin(), indices.end());
  if (std::adjacent_find(indices.begin(), indices.end()) != indices.end()) fail("two groups have the same index");
  if (!(request.denominators.rollouts > 0)) fail("denominators.rollouts must be above 0");
  if (request.max_rows < 1) fail("maxRowsPerPass must be at least 1");
  if (request.memory_budget < 0) fail("memoryBudget must not be negative");
  if (request.policy && request.loss.aggregation == Aggregation::dr_grpo && !(request.loss.max_completion_length > 0))
    fail("dr_grpo needs maxCompletionLength above 0");
}

void fill_stats(const StepSums& sums, StepStats* stats) {
  const double n = std::max<double>(1, static_cast<double>(sums.loss_tokens)), with_old = static_cast<double>(sums.with_old);
  stats->loss = sums.loss.loss;
  stats->kl = sums.loss.k3 / n;
  stats->entropy = sums.entropy / n;
  stats->clip_fraction = sums.loss.clipped / n;
  stats->tokens = sums.tokens;
  stats->unique_tokens = sums.unique_tokens;
  stats->loss_tokens = sums.loss_tokens;
  if (sums.with_old > 0) {
    stats->mismatch_kl = sums.mismatch_kl / with_old;
    stats->mult_prob_error = sums.mult_prob / with_old;
    stats->mismatch_max = sums.mismatch_max;
  }
  stats->skipped = !sums.finite;
  stats->pass_bytes = sums.plan_bytes;
  stats->kept = sums.kept;
}

}  // namespace

Trainer::Trainer(std::shared_ptr<Trainee> trained, const OptimizerOptions& options)
    : trained_(std::move(trained)),
      options_(options),
      state_(*trained_->model()->backend, trained_->size()),
      pass_(trained_->model()),
      sum_(*trained_->model()->backend, trained_->size()) {}

std::unique_ptr<FlatSpan> Trainer::run(const StepRequest& request, bool with_gradient, StepStats* stats, const std::atomic<bool>* cancel) {
  const std::shared_ptr<Model>& model = trained_->model();
  check_request(*model, request);
  if (request.kl_adapter && request.kl_adapter->model() != model) throw Error("E_ADAPTER", "klAdapter belongs to another model");
  const bool whole = trained_->adapter() == nullptr;
  if (whole && request.policy && request.loss.kl != 0) throw Error("E_IN_TRAINING", "KL to the base model needs an adapter: all of the model is being trained");
  if (!whole && model->in_training) throw Error("E_IN_TRAINING", "all of the adapter's model is being trained: load it again");
  const std::shared_lock weights(model->weights);
  std::vector<size_t> order(request.groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return request.groups[a].index < request.groups[b].index; });
  std::vector<int64_t> indices;
  for (const size_t g : order) indices.push_back(request.groups[g].index);

  Backend& backend = *model->backend;
  StepSums sums;
  const auto leaf = [&](size_t i, Tensor into) {
    bool written = false;
    for (const auto& part : split_group(request.groups[order[i]], request.max_rows)) {
      if (cancel && cancel->load()) throw Error("E_CANCELLED", "cancelled");
      const std::vector<float> coefficients = pass_coefficients(pass_, part, request, *trained_, with_gradient, &sums);
      const bool zero = std::all_of(coefficients.begin(), coefficients.end(), [](float c) { return c == 0; });
      if (!with_gradient || zero || !sums.finite) continue;
      if (!written) {
        pass_.backward(*trained_, coefficients, into);
      } else {
        auto extra = sum_.take();
        pass_.backward(*trained_, coefficients, extra->tensor());
        backend.add(pass_.queue(), extra->tensor(), into);
        sum_.recycle(std::move(extra));
      }
      written = true;
    }
    return written;
  };
  auto gradient = sum_.sum(pass_.queue(), indices, leaf);
  fill_stats(sums, stats);
  if (with_gradient && !gradient) {
    gradient = sum_.take();
    backend.fill(pass_.queue(), gradient->tensor(), 0);
  }
  if (with_gradient && sums.finite) {
    stats->grad_norm = global_norm(backend, pass_.queue(), gradient->tensor());
    stats->skipped = !std::isfinite(stats->grad_norm);
  }
  return gradient;
}

StepStats Trainer::train(const StepRequest& request, const std::atomic<bool>* cancel) {
  const std::lock_guard lock(mutex_);
  StepStats stats;
  auto gradient = run(request, true, &stats, cancel);
  if (!stats.skipped) {
    Backend& backend = *trained_->model()->backend;
    trained_->update(pass_.queue(), [&] {
      adamw_step(backend, pass_.queue(), options_, request.lr, request.clip, stats.grad_norm, trained_->flat(), gradient->tensor(),
                 trained_->decaying(), state_);
    });
  }
  sum_.recycle(std::move(gradient));
  return stats;
}

StepStats Trainer::evaluate(const StepRequest& request, const std::atomic<bool>* cancel) {
  const std::lock_guard lock(mutex_);
  StepStats stats;
  run(request, false, &stats, cancel);
  return stats;
}

StepStats Trainer::gradient(const StepRequest& request, std::vector<float>* flat, const std::atomic<bool>* cancel) {
  const std::lock_guard lock(mutex_);
  StepStats stats;
  auto gradient = run(request, true, &stats, cancel);
  flat->resize(static_cast<size_t>(trained_->size()));
  trained_->model()->backend->download(pass_.queue(), gradient->tensor(), flat->data());
  sum_.recycle(std::move(gradient));
  return stats;
}

std::shared_ptr<Adapter> Trainer::snapshot() {
  const std::lock_guard lock(mutex_);
  if (!trained_->adapter()) throw Error("E_ADAPTER", "a whole model is trained: there is no adapter to copy");
  return copy_adapter(*trained_->adapter());
}

}  // namespace cg
