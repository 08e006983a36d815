// The optimiser's state as a file: m.<tensor>, v.<tensor> in fp32 and the step count in the metadata; p.<tensor>, the values, where they are stored rounded.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/model.h"
#include "core/safetensors.h"
#include "core/trainer.h"

namespace cg {
namespace {

constexpr const char* format = "cg-optimizer-1";

/// The spans that a file holds, by the prefix of their tensors.
std::vector<std::pair<std::string, Tensor>> spans_of(const Trainee& trained, const OptimizerState& state) {
  std::vector<std::pair<std::string, Tensor>> spans{{"m.", state.m.tensor()}, {"v.", state.v.tensor()}};
  if (trained.stored_rounded()) spans.emplace_back("p.", trained.flat());
  return spans;
}

}  // namespace

void Trainer::save_state(const std::string& path) {
  const std::lock_guard lock(mutex_);
  Backend& backend = *trained_->model()->backend;
  const auto spans = spans_of(*trained_, state_);
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const auto& [prefix, span] : spans) {
    auto& list = values.emplace_back(static_cast<size_t>(trained_->size()));
    backend.download(pass_.queue(), span, list.data());
    for (const FlatPart& part : trained_->parts()) tensors.push_back({prefix + part.name, part.shape, list.data() + part.offset});
  }
  write_safetensors(path, tensors, {{"format", format}, {"step", std::to_string(state_.step)}});
}

void Trainer::load_state(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto fail = [&](const std::string& what) { throw Error("E_STATE", path + ": " + what); };
  try {
    const Safetensors file(path);
    int64_t step = -1;
    bool known = false;
    for (const auto& [key, value] : file.metadata()) {
      if (key == "format") known = value == format;
      if (key == "step" && !value.empty() && value.size() < 18 && value.find_first_not_of("0123456789") == std::string::npos) step = std::stoll(value);
    }
    if (!known || step < 0) fail("not an optimiser state");
    const auto& parts = trained_->parts();
    const auto spans = spans_of(*trained_, state_);
    const std::string whose = trained_->adapter() ? "adapter" : "model";
    if (file.tensors().size() != spans.size() * parts.size())
      fail("it has " + std::to_string(file.tensors().size()) + " tensors, this " + whose + " needs " + std::to_string(spans.size() * parts.size()));
    std::vector<std::vector<float>> values;
    for (const auto& [prefix, span] : spans) {
      auto& list = values.emplace_back(static_cast<size_t>(trained_->size()));
      for (const FlatPart& part : parts) {
        const StoredTensor* t = file.find(prefix + part.name);
        if (!t || t->dtype != "F32" || t->shape != part.shape) fail("no fitting tensor " + prefix + part.name + ": it is another " + whose + "'s");
        const std::vector<float> found = values_as_float(*t);
        std::copy(found.begin(), found.end(), list.begin() + part.offset);
      }
    }
    trained_->update(pass_.queue(), [&] {
      for (size_t i = 0; i < spans.size(); ++i) trained_->model()->backend->upload(pass_.queue(), values[i].data(), spans[i].second);
    });
    state_.step = step;
  } catch (const Error& error) {
    throw Error("E_STATE", error.what());
  }
}

}  // namespace cg
