#include "core/backward.h"

#include <algorithm>

namespace cg {
namespace {

int64_t workspace_bytes(const Model& model, int64_t rows, int64_t rank) {
  const ModelConfig& c = model.config;
  const Backend& backend = *model.backend;
  int64_t bytes = backend.workspace(Op::attention_backward, rows, c.heads, c.head_dim);
  for (const Linear& linear : model.layers[0].linears) {
    bytes = std::max(bytes, backend.workspace(Op::matmul_backward, rows, linear.out, linear.in));
    bytes = std::max(bytes, backend.workspace(Op::lora_gradient, rows, rank, linear.in));
    bytes = std::max(bytes, backend.workspace(Op::lora_gradient, rows, linear.out, rank));
  }
  return bytes;
}

struct LayerPass {
  Queue& queue;
  Model& model;
  int64_t index;
  const Adapter& adapter;
  const LayerState& state;
  BackwardState& scratch;
  Tensor gradient;

  /// dA, dB from the linear's input x and its output's gradient dy; dx (+)= dy W + scale · (dy B) A unless dx is none.
  void linear(LinearKind kind, Tensor x, Tensor dy, Tensor dx, bool accumulate) const {
    Backend& backend = *model.backend;
    const Linear& l = model.layers[static_cast<size_t>(index)].linears[kind];
    if (dx) backend.matmul_backward(queue, dy, l.weight, dx, accumulate, scratch.workspace);
    const AdapterLayout& layout = adapter.layout();
    const Tensor a = layout.a(adapter.flat(), index, kind), b = layout.b(adapter.flat(), index, kind);
    if (!a) return;
    const float scale = adapter.config().scale();
    backend.lora_gradient(queue, dy, state.shrunk[kind], scale, layout.b(gradient, index, kind), scratch.workspace);
    backend.lora_expand_backward(queue, dy, b, scale, scratch.dshrunk);
    backend.lora_gradient(queue, scratch.dshrunk, x, 1, layout.a(gradient, index, kind), scratch.workspace);
    if (dx) backend.lora_shrink_backward(queue, scratch.dshrunk, a, dx);
  }

  // Through rotation and q/k norm; returns the gradient of the projection's output.
  Tensor heads(Weight norm, Tensor dy, Tensor raw, Tensor rstd, Tensor draw, const AttentionTable& table, const RopeTensors& rope) const {
    Backend& backend = *model.backend;
    const int64_t d = model.config.head_dim;
    backend.rope(queue, dy.split(d), table.position, rope.cos, rope.sin, dy.split(d), true);
    if (!norm) return dy;
    backend.rms_norm_backward(queue, dy.split(d), raw.split(d), norm, rstd, draw.split(d), false);
    return draw;
  }
};

}  // namespace

BackwardState plan_backward(Arena& arena, const Model& model, int64_t rows, int64_t head_rows, int64_t rank) {
  const ModelConfig& c = model.config;
  BackwardState s;
  s.dx = arena.take({rows, c.hidden});
  s.dhead_x = arena.take({head_rows, c.hidden});
  s.dnormed = arena.take({rows, c.hidden});
  s.dq = arena.take({rows, c.q_size()});
  s.dk = arena.take({rows, c.kv_size()});
  s.dv = arena.take({rows, c.kv_size()});
  s.dattention = arena.take({rows, c.q_size()});
  if (c.qk_norm) {
    s.dq_raw = arena.take({rows, c.q_size()});
    s.dk_raw = arena.take({rows, c.kv_size()});
  }
  s.dgate = arena.take({rows, c.intermediate});
  s.dup = arena.take({rows, c.intermediate});
  s.dactivated = arena.take({rows, c.intermediate});
  s.dshrunk = arena.take({rows, rank});
  s.workspace = arena.take({(workspace_bytes(model, rows, rank) + 3) / 4});
  return s;
}

void backward(Queue& queue, Model& model, const ForwardLists& lists, const Adapter& adapter, const RopeTensors& rope, const ForwardState& state, Tensor dhead,
              BackwardState& scratch, Tensor gradient) {
  Backend& backend = *model.backend;
  const ModelConfig& c = model.config;
  const int64_t d = c.head_dim;
  backend.rms_norm_backward(queue, dhead, state.head_x, model.final_norm, state.head_rstd, scratch.dhead_x, false);
  backend.fill(queue, scratch.dx, 0);
  backend.scatter_rows(queue, scratch.dhead_x, lists.head_row, scratch.dx);

  for (int64_t index = c.layers - 1; index >= 0; --index) {
    const auto l = static_cast<size_t>(index);
    const Layer& layer = model.layers[l];
    const LayerState& s = state.layers[l];
    const LayerPass pass{queue, model, index, adapter, s, scratch, gradient};
    const AdapterRun run{0, s.x.shape[0], &adapter};
    restore_layer(queue, model, lists, std::span(&run, 1), rope, state, index);

    // x_out = x_mid + down(silu(gate n) · up n), n = norm(x_mid); what is cheap to compute again was not kept.
    backend.swiglu(queue, s.gate, s.up, state.activated);
    pass.linear(down_proj, state.activated, scratch.dx, scratch.dactivated, false);
    backend.swiglu_backward(queue, scratch.dactivated, s.gate, s.up, scratch.dgate, scratch.dup);
    backend.rms_norm(queue, s.x_mid, layer.post_norm, c.eps, state.normed, Tensor{});
    pass.linear(gate_proj, state.normed, scratch.dgate, scratch.dnormed, false);
    pass.linear(up_proj, state.normed, scratch.dup, scratch.dnormed, true);
    backend.rms_norm_backward(queue, scratch.dnormed, s.x_mid, layer.post_norm, s.rstd_post, scratch.dx, true);

    // x_mid = x + o(attention(q, k, v)), projections of n = norm(x)
    pass.linear(o_proj, s.attention, scratch.dx, scratch.dattention, false);
    backend.attention_backward(queue, scratch.dattention.split(d), s.q.split(d), s.k.split(d), s.v.split(d), s.attention.split(d), s.lse, lists.table,
                               scratch.dq.split(d), scratch.dk.split(d), scratch.dv.split(d), scratch.workspace);
    const Tensor dq = pass.heads(layer.q_norm, scratch.dq, s.q_raw, s.rstd_q, scratch.dq_raw, lists.table, rope);
    const Tensor dk = pass.heads(layer.k_norm, scratch.dk, s.k_raw, s.rstd_k, scratch.dk_raw, lists.table, rope);
    backend.rms_norm(queue, s.x, layer.input_norm, c.eps, state.normed, Tensor{});
    const Tensor dnormed = index > 0 ? scratch.dnormed : Tensor{};
    pass.linear(q_proj, state.normed, dq, dnormed, false);
    pass.linear(k_proj, state.normed, dk, dnormed, true);
    pass.linear(v_proj, state.normed, scratch.dv, dnormed, true);
    if (index > 0) backend.rms_norm_backward(queue, scratch.dnormed, s.x, layer.input_norm, s.rstd_in, scratch.dx, true);
  }
}

}  // namespace cg
