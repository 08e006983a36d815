// The optimiser's state as a file: m.<factor>, v.<factor> in fp32 and the step count in the metadata.
#include <algorithm>

#include "core/error.h"
#include "core/safetensors.h"
#include "core/trainer.h"

namespace cg {
namespace {

constexpr const char* format = "cg-optimizer-1";

}  // namespace

void Trainer::save_state(const std::string& path) {
  const std::lock_guard lock(mutex_);
  Backend& backend = *adapter_->model()->backend;
  const auto size = static_cast<size_t>(adapter_->layout().size());
  std::vector<float> m(size), v(size);
  backend.download(pass_.queue(), state_.m.tensor(), m.data());
  backend.download(pass_.queue(), state_.v.tensor(), v.data());
  std::vector<NamedTensor> tensors;
  for (const auto& [prefix, values] : {std::pair("m.", &m), std::pair("v.", &v)})
    for (const Factor& f : adapter_->layout().factors()) tensors.push_back({prefix + f.name, {f.rows, f.columns}, values->data() + f.offset});
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
    const auto& factors = adapter_->layout().factors();
    if (file.tensors().size() != 2 * factors.size())
      fail("it has " + std::to_string(file.tensors().size()) + " tensors, this adapter needs " + std::to_string(2 * factors.size()));
    const auto size = static_cast<size_t>(adapter_->layout().size());
    std::vector<float> m(size), v(size);
    for (const auto& [prefix, values] : {std::pair("m.", &m), std::pair("v.", &v)})
      for (const Factor& f : factors) {
        const StoredTensor* t = file.find(prefix + f.name);
        if (!t || t->dtype != "F32" || t->shape != std::vector<int64_t>{f.rows, f.columns})
          fail(std::string("no fitting tensor ") + prefix + f.name + ": it is another adapter's");
        const std::vector<float> part = values_as_float(*t);
        std::copy(part.begin(), part.end(), values->begin() + f.offset);
      }
    Backend& backend = *adapter_->model()->backend;
    backend.upload(pass_.queue(), m.data(), state_.m.tensor());
    backend.upload(pass_.queue(), v.data(), state_.v.tensor());
    backend.wait(pass_.queue());
    state_.step = step;
  } catch (const Error& error) {
    throw Error("E_STATE", error.what());
  }
}

}  // namespace cg
