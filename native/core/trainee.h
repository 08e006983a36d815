// What a trainer changes: values that lie as one flat fp32 span, so that norm, AdamW and reduction are one op each. An adapter is one; all weights of a model
// are another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"

namespace cg {

class Adapter;
class Arena;
class GradientSink;
struct BackwardState;
struct ForwardState;
struct Model;

/// One tensor of a flat span.
struct FlatPart {
  std::string name;
  int64_t offset;  // elements
  std::vector<int64_t> shape;

  int64_t size() const { return elements(shape); }
  /// Its place in a span.
  Tensor in(Tensor flat) const;
};

/// A flat fp32 tensor of `size` elements in its own buffer.
class FlatSpan {
 public:
  FlatSpan(Backend&, int64_t size);
  ~FlatSpan() { backend_.release(tensor_.buffer); }
  FlatSpan(const FlatSpan&) = delete;
  FlatSpan& operator=(const FlatSpan&) = delete;
  Tensor tensor() const { return tensor_; }

 private:
  Backend& backend_;
  Tensor tensor_;
};

class Trainee {
 public:
  virtual ~Trainee() = default;

  virtual const std::shared_ptr<Model>& model() const = 0;
  virtual Tensor flat() const = 0;
  /// The tensors of the span, ascending, without a gap.
  virtual const std::vector<FlatPart>& parts() const = 0;
  /// Weight decay applies to this many elements at the beginning of the span.
  virtual int64_t decaying() const = 0;
  /// The adapter that passes run with; null: the model as it is.
  virtual const Adapter* adapter() const = 0;
  /// What is stored of it elsewhere (an adapter's or a model's directory) is rounded, so an optimiser's state must hold the values too.
  virtual bool stored_rounded() const = 0;

  /// Takes scratch for its part of a backward pass; returns the bytes of workspace that part needs.
  virtual int64_t plan_gradient(Arena&, int64_t rows, int64_t head_rows, BackwardState*) const = 0;
  /// Writes the gradient of a pass into `into`, which has the span's layout.
  virtual std::unique_ptr<GradientSink> gradient(Queue&, const ForwardState&, const BackwardState&, Tensor into) const = 0;

  /// Runs ops that change the span and waits for them and for what follows from them.
  virtual void update(Queue&, const std::function<void()>& change) = 0;

  int64_t size() const { return parts().empty() ? 0 : parts().back().offset + parts().back().size(); }
  std::vector<float> download(Queue&) const;
};

}  // namespace cg
