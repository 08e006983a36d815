// From the gradient of the head rows to that of every linear, norm and the embedding: one walk through the layers, whatever is trained.
#pragma once

#include "core/forward.h"

namespace cg {

/// Scratch of the backward pass.
struct BackwardState {
  Tensor dx, dhead_x;             // [R, H], [M, H]
  Tensor dnormed;                 // [R, H]
  Tensor dq, dk, dv, dattention;  // [R, NH·D], [R, NK·D] ×2, [R, NH·D]
  Tensor dq_raw, dk_raw;          // q/k norm only
  Tensor dgate, dup, dactivated;  // [R, I]
  Tensor dshrunk;                 // [R, r], an adapter's
  Tensor ones;                    // [R, 1], a whole model's: its biases
  Tensor workspace;
};

/// Takes what the walk gives and makes of it the gradient of what is trained. Tensors are the pass's own, good until the call returns.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// The head, before the walk: h [M, H], its log-probs and what each counts; `workspace` fits head_weight_gradient.
  virtual void head(Tensor /*h*/, const LossEntries&, Tensor /*coefficient*/, Tensor /*workspace*/) {}
  /// A linear's input x [R, in] and the gradient dy [R, out] of its output. dx [R, in] has dy · W already; what else depends on x adds to it. It may be none.
  virtual void linear(int64_t layer, LinearKind, Tensor x, Tensor dy, Tensor dx) = 0;
  /// A norm's input x, its 1 / rms and the gradient dy of its output.
  virtual void norm(Weight, Tensor /*dy*/, Tensor /*x*/, Tensor /*rstd*/) {}
  /// Whether the walk goes on below the projections of layer 0, and then the gradient dx [R, H] of the embedding's rows `ids`.
  virtual bool wants_embedding() const { return false; }
  virtual void embedding(Tensor /*ids*/, Tensor /*dx*/) {}
};

BackwardState plan_backward(Arena&, const Model&, int64_t rows, int64_t head_rows, const Trainee&);

/// Walks from the head rows to the first layer. dhead [M, H] is d loss / d (state of the head rows after the final norm); `state` is that of a forward pass that
/// kept something, with these adapter runs.
void backward(Queue&, Model&, const ForwardLists&, std::span<const AdapterRun>, const RopeTensors&, const ForwardState&, Tensor dhead, BackwardState&,
              GradientSink&);

}  // namespace cg
