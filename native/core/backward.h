// From the gradient of the head rows to the gradient of every LoRA factor.
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
  Tensor dshrunk;                 // [R, r]
  Tensor workspace;
};

BackwardState plan_backward(Arena&, const Model&, int64_t rows, int64_t head_rows, int64_t rank);

/// Writes d loss / d factor for every factor of `adapter` into `gradient` (the flat layout). dhead [M, H] is d loss / d (state of the head rows after the final
/// norm); `state` is that of a forward pass that kept something, with this adapter on all rows. Frozen weights get no gradient, so layer 0 stops at its projections.
void backward(Queue&, Model&, const ForwardLists&, const Adapter&, const RopeTensors&, const ForwardState&, Tensor dhead, BackwardState&, Tensor gradient);

}  // namespace cg
