#include "core/parameters.h"

#include <algorithm>

#include "core/dtype.h"
#include "core/error.h"
#include "core/safetensors.h"

namespace cg {
namespace {

std::shared_ptr<Model> begin_training(std::shared_ptr<Model> model) {
  if (model->in_training.exchange(true)) throw Error("E_IN_TRAINING", "all weights of this model are being trained already: load it again");
  return model;
}

}  // namespace

Parameters::Parameters(std::shared_ptr<Model> model, std::optional<DType> stored)
    : model_(begin_training(std::move(model))), flat_(*model_->backend, model_->parameter_count()) {
  const std::vector<float> in_order = model_->first_values();
  std::vector<float> values;
  for (const bool matrices : {true, false}) {
    auto from = in_order.begin();
    for (const Parameter& p : model_->parameters) {
      const auto begin = from;
      from += p.size();
      if ((p.kind == ParameterKind::matrix) != matrices) continue;
      at_[p.weight.id] = parts_.size();
      parts_.push_back({p.name, static_cast<int64_t>(values.size()), p.shape});
      parameters_.push_back(&p);
      stored_.push_back(stored.value_or(p.dtype));
      values.insert(values.end(), begin, from);
    }
    if (matrices) decaying_ = static_cast<int64_t>(values.size());
  }
  // A run may go on from its first checkpoint, which has them rounded.
  for (size_t i = 0; i < parts_.size(); ++i)
    for (int64_t j = parts_[i].offset; j < parts_[i].offset + parts_[i].size(); ++j)
      values[static_cast<size_t>(j)] = rounded(values[static_cast<size_t>(j)], stored_[i]);
  const auto queue = model_->backend->queue();
  update(*queue, [&] { model_->backend->upload(*queue, values.data(), flat_.tensor()); });
}

void Parameters::update(Queue& queue, const std::function<void()>& change) {
  const std::lock_guard lock(model_->weights);
  change();
  for (size_t i = 0; i < parts_.size(); ++i) model_->backend->set_weight(queue, parameters_[i]->weight, parts_[i].in(flat_.tensor()), stored_[i]);
  model_->backend->wait(queue);
}

void Parameters::save(const std::string& dir) const {
  const auto queue = model_->backend->queue();
  const std::vector<float> values = download(*queue);
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < parts_.size(); ++i) tensors.push_back({parts_[i].name, parts_[i].shape, values.data() + parts_[i].offset, stored_[i]});
  write_safetensors(dir + "/model.safetensors", tensors, {{"format", "pt"}});
}

}  // namespace cg
