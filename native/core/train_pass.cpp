#include "core/train_pass.h"

#include <algorithm>
#include <cmath>

namespace cg {
namespace {

// One value per loss token from one per span.
std::vector<double> spread(const Sequence& s, const std::vector<float>& per_span) {
  std::vector<double> values;
  for (size_t i = 0; i < s.spans.size(); ++i)
    values.insert(values.end(), static_cast<size_t>(s.spans[i].second - s.spans[i].first), per_span.empty() ? 1.0 : static_cast<double>(per_span[i]));
  return values;
}

std::vector<double> widen(std::span<const float> values) { return {values.begin(), values.end()}; }

void add_mismatch(std::span<const double> current, std::span<const double> old, StepSums* sums) {
  for (size_t i = 0; i < current.size(); ++i) {
    const double d = current[i] - old[i];
    sums->mismatch_kl += std::exp(d) - d - 1;
    sums->mult_prob += std::exp(std::abs(d));
    sums->mismatch_max = std::max(sums->mismatch_max, std::abs(d));
  }
  sums->with_old += static_cast<int64_t>(current.size());
}

}  // namespace

std::vector<std::vector<const TrainSequence*>> split_group(const TrainGroup& group, int64_t max_rows) {
  std::vector<std::vector<const TrainSequence*>> parts;
  TrieBuilder builder;
  for (const TrainSequence& s : group.sequences) {
    if (s.sequence.loss_tokens() == 0) continue;
    if (parts.empty() || builder.rows() + builder.new_rows(s.sequence) > max_rows) {
      builder = TrieBuilder();
      parts.emplace_back();
    }
    builder.add(s.sequence);
    parts.back().push_back(&s);
  }
  return parts;
}

std::vector<float> pass_coefficients(TriePass& pass, std::span<const TrainSequence* const> sequences, const StepRequest& request, const Trainee& trained,
                                     bool train, StepSums* sums) {
  TrieBuilder builder;
  bool needs_reference = false;
  for (const TrainSequence* s : sequences) {
    builder.add(s->sequence);
    sums->tokens += s->sequence.rows();
    needs_reference |= request.policy && request.loss.kl != 0 && s->reference.empty();
  }
  const TrieBatch batch = builder.build();
  sums->unique_tokens += batch.rows();
  const Adapter* adapter = trained.adapter();
  int64_t rank = adapter ? adapter->config().rank : 0;
  if (needs_reference && request.kl_adapter) rank = std::max(rank, request.kl_adapter->config().rank);
  if (train) pass.load_to_train(batch, rank, trained, request.memory_budget);
  else pass.load(batch, rank);
  if (sums->plan_bytes < pass.planned_bytes()) {
    sums->plan_bytes = pass.planned_bytes();
    sums->kept = pass.kept();
  }

  std::vector<float> reference, current, entropy;
  if (needs_reference) {
    pass.forward(request.kl_adapter.get());
    pass.log_probs(&reference, nullptr);
  }
  pass.forward(adapter);
  pass.log_probs(&current, &entropy);

  std::vector<float> coefficients(current.size());
  size_t at = 0;
  for (const TrainSequence* s : sequences) {
    const auto n = static_cast<size_t>(s->sequence.loss_tokens());
    const std::vector<double> now = widen(std::span(current).subspan(at, n));
    const std::vector<double> old = s->old.empty() ? now : widen(s->old);
    std::vector<double> c(n);
    LossSums part;
    if (request.policy) {
      const std::vector<double> advantage = spread(s->sequence, s->advantage);
      std::vector<double> ref;
      if (!s->reference.empty()) ref = widen(s->reference);
      else if (needs_reference) ref = widen(std::span(reference).subspan(at, n));
      part = policy_loss(request.loss, request.denominators, {now, old, ref, advantage}, c);
    } else {
      part = weighted_loss(request.denominators, now, spread(s->sequence, s->weight), c);
    }
    sums->loss.add(part);
    if (!s->old.empty()) add_mismatch(now, old, sums);
    for (size_t i = 0; i < n; ++i) {
      coefficients[at + i] = static_cast<float>(c[i]);
      sums->entropy += entropy[at + i];
      sums->finite &= std::isfinite(coefficients[at + i]);
    }
    sums->finite &= std::isfinite(part.loss);
    sums->loss_tokens += static_cast<int64_t>(n);
    at += n;
  }
  return coefficients;
}

}  // namespace cg
