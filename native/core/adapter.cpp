#include "core/adapter.h"

#include <cmath>

#include "core/error.h"
#include "core/rng.h"

namespace cg {
namespace {

std::atomic<uint64_t> next_id{1};

}  // namespace

float LoraConfig::scale() const { return static_cast<float>(alpha / (rslora ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank))); }

AdapterLayout::AdapterLayout(const Model& model, const LoraConfig& config) {
  for (size_t l = 0; l < model.layers.size(); ++l) {
    auto& first = first_.emplace_back();
    for (int k = 0; k < linear_kinds; ++k) {
      first[k] = -1;
      if (!config.targets[k]) continue;
      first[k] = static_cast<int>(factors_.size());
      const Linear& linear = model.layers[l].linears[k];
      const std::string path = "base_model.model.model.layers." + std::to_string(l) + "." + path_of(static_cast<LinearKind>(k));
      factors_.push_back({path + ".lora_A.weight", size_, {config.rank, linear.in}});
      size_ += config.rank * linear.in;
      factors_.push_back({path + ".lora_B.weight", size_, {linear.out, config.rank}});
      size_ += linear.out * config.rank;
    }
  }
}

Tensor AdapterLayout::view(Tensor flat, int64_t layer, LinearKind kind, int which) const {
  const int first = first_[static_cast<size_t>(layer)][kind];
  return first < 0 ? Tensor{} : factors_[static_cast<size_t>(first + which)].in(flat);
}

Adapter::Adapter(std::shared_ptr<Model> model, const LoraConfig& config)
    : id(next_id++), model_(std::move(model)), config_(config), layout_(*model_, config), flat_(*model_->backend, layout_.size()) {}

void Adapter::upload(Queue& queue, const std::vector<float>& values) {
  CG_INVARIANT(static_cast<int64_t>(values.size()) == layout_.size());
  model_->backend->upload(queue, values.data(), flat());
  model_->backend->wait(queue);
}

void Adapter::update(Queue& queue, const std::function<void()>& change) {
  ++version;
  change();
  model_->backend->wait(queue);
  ++version;
}

std::shared_ptr<Adapter> new_adapter(std::shared_ptr<Model> model, const LoraConfig& config, uint64_t seed) {
  const auto adapter = std::make_shared<Adapter>(std::move(model), config);
  std::vector<float> values(static_cast<size_t>(adapter->layout().size()), 0.0f);
  const auto& factors = adapter->layout().factors();
  for (size_t f = 0; f < factors.size(); f += 2) {  // A factors; B stays zero
    const double bound = 1 / std::sqrt(static_cast<double>(factors[f].shape[1]));
    const int64_t size = factors[f].size();
    for (int64_t i = 0; i < size; ++i)
      values[static_cast<size_t>(factors[f].offset + i)] = static_cast<float>((2 * uniform({seed, f, static_cast<uint64_t>(i)}) - 1) * bound);
  }
  const auto queue = adapter->model()->backend->queue();
  adapter->upload(*queue, values);
  return adapter;
}

std::shared_ptr<Adapter> copy_adapter(const Adapter& from) {
  const auto to = std::make_shared<Adapter>(from.model(), from.config());
  Backend& backend = *from.model()->backend;
  const auto queue = backend.queue();
  backend.copy(*queue, from.flat(), to->flat());
  backend.wait(*queue);
  return to;
}

}  // namespace cg
