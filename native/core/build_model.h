// A model from its shape and a source of tensors.
#pragma once

#include "core/model.h"

namespace cg {

/// Where a model's tensors come from.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The dense values of a parameter of the stated name and shape, good until the next call; sets its dtype. `index` counts the calls.
  virtual const void* values(Parameter*, size_t index) = 0;
};

/// Asks the source for every tensor that a model of this config has, in the order of its layers. Throws E_VOCABULARY for a real_vocab that does not fit
/// `where`'s embedding.
std::shared_ptr<Model> build_model(const ModelConfig&, const std::string& where, std::unique_ptr<Backend>, int64_t real_vocab, TensorSource&);

}  // namespace cg
