#include "core/backward.h"

#include <algorithm>

namespace cg {
namespace {

int64_t workspace_bytes(const Model& model, int64_t rows) {
  const ModelConfig& c = model.config;
  const Backend& backend = *model.backend;
  int64_t bytes = backend.workspace(Op::attention_backward, rows, c.heads, c.head_dim);
  for (const Linear& linear : model.layers[0].linears) bytes = std::max(bytes, backend.workspace(Op::matmul_backward, rows, linear.out, linear.in));
  return bytes;
}

struct LayerPass {
  Queue& queue;
  Model& model;
  int64_t index;
  BackwardState& scratch;
  GradientSink& sink;

  /// dx (+)= dy W, and what the sink adds, unless dx is none.
  void linear(LinearKind kind, Tensor x, Tensor dy, Tensor dx, bool accumulate) const {
    const Linear& l = model.layers[static_cast<size_t>(index)].linears[kind];
    if (dx) model.backend->matmul_backward(queue, dy, l.weight, dx, accumulate, scratch.workspace);
    sink.linear(index, kind, x, dy, dx);
  }

  // Through rotation and q/k norm; returns the gradient of the projection's output.
  Tensor heads(Weight norm, Tensor dy, Tensor raw, Tensor rstd, Tensor draw, const AttentionTable& table, const RopeTensors& rope) const {
    Backend& backend = *model.backend;
    const int64_t d = model.config.head_dim;
    backend.rope(queue, dy.split(d), table.position, rope.cos, rope.sin, dy.split(d), true);
    if (!norm) return dy;
    sink.norm(norm, dy.split(d), raw.split(d), rstd);
    backend.rms_norm_backward(queue, dy.split(d), raw.split(d), norm, rstd, draw.split(d), false);
    return draw;
  }
};

}  // namespace

BackwardState plan_backward(Arena& arena, const Model& model, int64_t rows, int64_t head_rows, const Trainee& trained) {
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
  const int64_t bytes = std::max(workspace_bytes(model, rows), trained.plan_gradient(arena, rows, head_rows, &s));
  s.workspace = arena.take({(bytes + 3) / 4});
  return s;
}

void backward(Queue& queue, Model& model, const ForwardLists& lists, std::span<const AdapterRun> runs, const RopeTensors& rope, const ForwardState& state,
              Tensor dhead, BackwardState& scratch, GradientSink& sink) {
  Backend& backend = *model.backend;
  const ModelConfig& c = model.config;
  const int64_t d = c.head_dim;
  sink.norm(model.final_norm, dhead, state.head_x, state.head_rstd);
  backend.rms_norm_backward(queue, dhead, state.head_x, model.final_norm, state.head_rstd, scratch.dhead_x, false);
  backend.fill(queue, scratch.dx, 0);
  backend.scatter_rows(queue, scratch.dhead_x, lists.head_row, scratch.dx);

  for (int64_t index = c.layers - 1; index >= 0; --index) {
    const auto l = static_cast<size_t>(index);
    const Layer& layer = model.layers[l];
    const LayerState& s = state.layers[l];
    const LayerPass pass{queue, model, index, scratch, sink};
    const bool below = index > 0 || sink.wants_embedding();
    restore_layer(queue, model, lists, runs, rope, state, index);

    // x_out = x_mid + down(silu(gate n) · up n), n = norm(x_mid); what is cheap to compute again was not kept.
    backend.swiglu(queue, s.gate, s.up, state.activated);
    pass.linear(down_proj, state.activated, scratch.dx, scratch.dactivated, false);
    backend.swiglu_backward(queue, scratch.dactivated, s.gate, s.up, scratch.dgate, scratch.dup);
    backend.rms_norm(queue, s.x_mid, layer.post_norm, c.eps, state.normed, Tensor{});
    pass.linear(gate_proj, state.normed, scratch.dgate, scratch.dnormed, false);
    pass.linear(up_proj, state.normed, scratch.dup, scratch.dnormed, true);
    sink.norm(layer.post_norm, scratch.dnormed, s.x_mid, s.rstd_post);
    backend.rms_norm_backward(queue, scratch.dnormed, s.x_mid, layer.post_norm, s.rstd_post, scratch.dx, true);

    // x_mid = x + o(attention(q, k, v)), projections of n = norm(x)
    pass.linear(o_proj, s.attention, scratch.dx, scratch.dattention, false);
    backend.attention_backward(queue, scratch.dattention.split(d), s.q.split(d), s.k.split(d), s.v.split(d), s.attention.split(d), s.lse, lists.table,
                               scratch.dq.split(d), scratch.dk.split(d), scratch.dv.split(d), scratch.workspace);
    const Tensor dq = pass.heads(layer.q_norm, scratch.dq, s.q_raw, s.rstd_q, scratch.dq_raw, lists.table, rope);
    const Tensor dk = pass.heads(layer.k_norm, scratch.dk, s.k_raw, s.rstd_k, scratch.dk_raw, lists.table, rope);
    backend.rms_norm(queue, s.x, layer.input_norm, c.eps, state.normed, Tensor{});
    const Tensor dnormed = below ? scratch.dnormed : Tensor{};
    pass.linear(q_proj, state.normed, dq, dnormed, false);
    pass.linear(k_proj, state.normed, dk, dnormed, true);
    pass.linear(v_proj, state.normed, scratch.dv, dnormed, true);
    if (!below) return;
    sink.norm(layer.input_norm, scratch.dnormed, s.x, s.rstd_in);
    backend.rms_norm_backward(queue, scratch.dnormed, s.x, layer.input_norm, s.rstd_in, scratch.dx, true);
  }
  sink.embedding(lists.ids, scratch.dx);
}

}  // namespace cg
