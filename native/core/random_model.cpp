// A model that nothing has been taught yet.
#include <cmath>
#include <filesystem>
#include <numbers>

#include "core/build_model.h"
#include "core/dtype.h"
#include "core/rng.h"

namespace cg {
namespace {

/// A standard normal number of (seed, tensor, element): Box & Muller 1958, in double.
double normal(uint64_t seed, uint64_t tensor, uint64_t element) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform({seed, tensor, 2 * element})));
  return radius * std::cos(2 * std::numbers::pi * uniform({seed, tensor, 2 * element + 1}));
}

class RandomTensors final : public TensorSource {
 public:
  RandomTensors(const ModelConfig& config, uint64_t seed) : deviation_(config.initializer_range), dtype_(config.dtype), seed_(seed) {}

  const void* values(Parameter* parameter, size_t index) override {
    const bool drawn = parameter->kind == ParameterKind::matrix || parameter->kind == ParameterKind::embedding;
    values_.assign(static_cast<size_t>(parameter->size()), parameter->kind == ParameterKind::norm ? 1.0f : 0.0f);
    for (size_t i = 0; drawn && i < values_.size(); ++i) values_[i] = rounded(static_cast<float>(deviation_ * normal(seed_, index, i)), dtype_);
    parameter->dtype = DType::f32;
    return values_.data();
  }
  const std::vector<float>& last() const { return values_; }

 private:
  double deviation_;
  DType dtype_;
  uint64_t seed_;
  std::vector<float> values_;
};

}  // namespace

std::shared_ptr<Model> random_model(const std::string& config_file, std::unique_ptr<Backend> backend, int64_t real_vocab, uint64_t seed) {
  const ModelConfig config = read_config(config_file);
  RandomTensors tensors(config, seed);
  const std::string where = std::filesystem::path(config_file).lexically_normal().parent_path().string();
  const auto model = build_model(config, where, std::move(backend), real_vocab, tensors);
  model->first_values = [config, seed, parameters = model->parameters]() mutable {
    RandomTensors again(config, seed);
    std::vector<float> all;
    for (size_t i = 0; i < parameters.size(); ++i) {
      again.values(&parameters[i], i);
      all.insert(all.end(), again.last().begin(), again.last().end());
    }
    return all;
  };
  for (Parameter& p : model->parameters) p.dtype = config.dtype;  // what a checkpoint of it is written in
  return model;
}

}  // namespace cg
