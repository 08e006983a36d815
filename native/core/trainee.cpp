#include "core/trainee.h"

#include "core/model.h"

namespace cg {

Tensor FlatPart::in(Tensor flat) const {
  Tensor t;
  t.buffer = flat.buffer;
  t.offset = flat.offset + offset * 4;
  t.rank = static_cast<int>(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) {
    t.shape[i] = shape[i];
    t.strides[i] = stride;
  }
  return t;
}

FlatSpan::FlatSpan(Backend& backend, int64_t size) : backend_(backend) {
  tensor_.buffer = backend.arena(size * 4);
  tensor_.rank = 1;
  tensor_.shape = {size, 1, 1, 1};
  tensor_.strides = {1, 1, 1, 1};
}

std::vector<float> Trainee::download(Queue& queue) const {
  std::vector<float> values(static_cast<size_t>(size()));
  model()->backend->download(queue, flat(), values.data());
  return values;
}

}  // namespace cg
