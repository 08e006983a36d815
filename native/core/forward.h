// One pass of rows through the model. Training, scoring, prefill and decode all come through here, with the same ops in the same order: that is why a token has
// the same bits in all of them.
//
// R rows, M head rows, H hidden, I intermediate, NH/NK query/key heads, D head dimension.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/adapter.h"
#include "core/arena.h"
#include "core/model.h"

namespace cg {

/// A batch's lists on the device.
struct ForwardLists {
  Tensor ids;  // [R]
  AttentionTable table;
  Tensor slot;      // [R] where keys and values go; none: slot = row
  Tensor head_row;  // [M] rows whose final state is wanted
};

/// Rows [begin, end) use `adapter`; null is the base model.
struct AdapterRun {
  int64_t begin, end;
  const Adapter* adapter;
};

/// Keys [S / page_size, NK, D, page_size] and values [S, NK, D] of all layers.
struct KvStore {
  std::vector<Tensor> k, v;
};

/// What one layer computes and its backward pass needs.
struct LayerState {
  Tensor x;                                 // [R, H] input, the residual stream
  Tensor rstd_in, rstd_post;                // [R]
  Tensor q_raw, k_raw;                      // [R, NH·D], [R, NK·D] before q/k norm; none without that norm
  Tensor rstd_q, rstd_k;                    // [R·NH], [R·NK]
  Tensor q, k, v;                           // [R, NH·D], [R, NK·D] ready for attention
  Tensor attention, lse;                    // [R, NH·D], [R, NH]
  Tensor x_mid;                             // [R, H] residual after attention
  Tensor gate, up;                          // [R, I]
  std::array<Tensor, linear_kinds> shrunk;  // [R, r] A x of each adapted linear
};

/// What a forward pass keeps for the backward pass; the rest is computed again there, by the same ops from the same inputs, so the bits do not depend on it.
enum class Keep {
  nothing,       // there is no backward pass: all layers share one set of tensors
  everything,
  all_but_mlp,   // gate and up, the widest tensors, are computed again
  layer_inputs,  // only the residual stream at each layer's input, and A x of down
};
const char* name_of(Keep);

struct ForwardState {
  Keep keep = Keep::nothing;
  std::vector<LayerState> layers;  // tensors that are not kept are the same in all layers
  Tensor x;                        // [R, H] the last layer's output
  Tensor normed, activated;        // [R, H], [R, I] scratch
  Tensor head_x, head_rstd, head;  // [M, H], [M], [M, H] residual, and after the final norm
  Tensor workspace;
};

/// Takes the state's tensors from an arena. rank: of the adapter (0: none).
ForwardState plan_forward(Arena&, const Model&, int64_t rows, int64_t head_rows, int64_t rank, Keep);

/// Embedding to final norm of the head rows. `kv`: where keys and values are stored; null: the state's own k and v (training).
void forward(Queue&, Model&, const ForwardLists&, std::span<const AdapterRun>, const RopeTensors&, const KvStore* kv, ForwardState&);

/// Computes again what `state.keep` left out of a layer, everything from its input to gate and up, where a later layer has overwritten it: layers descend from
/// the last one. state.normed is overwritten.
void restore_layer(Queue&, Model&, const ForwardLists&, std::span<const AdapterRun>, const RopeTensors&, const ForwardState&, int64_t layer);

}  // namespace cg
