#include "core/forward.h"

#include <algorithm>

#include "core/error.h"

namespace cg {
namespace {

int64_t workspace_bytes(const Model& model, int64_t rows) {
  const ModelConfig& c = model.config;
  const Backend& backend = *model.backend;
  int64_t bytes = backend.workspace(Op::attention, rows, c.heads, c.head_dim);
  for (const Linear& linear : model.layers[0].linears) bytes = std::max(bytes, backend.workspace(Op::matmul, rows, linear.out, linear.in));
  return bytes;
}

/// One layer's ops. y (+)= W x + b, then + scale · B (A x) on the rows of each adapter run.
struct LayerPass {
  Queue& queue;
  Model& model;
  int64_t index;
  std::span<const AdapterRun> runs;
  LayerState& state;
  Tensor workspace;

  void linear(LinearKind kind, Tensor x, Tensor y, bool accumulate) const {
    Backend& backend = *model.backend;
    const Linear& l = model.layers[static_cast<size_t>(index)].linears[kind];
    backend.matmul(queue, x, l.weight, l.bias, y, accumulate, workspace);
    for (const AdapterRun& run : runs) {
      if (!run.adapter || run.begin == run.end) continue;
      const Tensor a = run.adapter->layout().a(run.adapter->flat(), index, kind);
      if (!a) continue;
      Tensor shrunk = state.shrunk[kind].rows(run.begin, run.end);
      shrunk.shape[1] = shrunk.strides[0] = a.shape[0];  // runs may have adapters of smaller rank
      backend.lora_shrink(queue, x.rows(run.begin, run.end), a, shrunk);
      const Tensor b = run.adapter->layout().b(run.adapter->flat(), index, kind);
      backend.lora_expand(queue, shrunk, b, run.adapter->config().scale(), y.rows(run.begin, run.end));
    }
  }

  // Projection, q/k norm per head where the model has one, rotation.
  void heads(LinearKind kind, Weight norm, Tensor x, Tensor raw, Tensor rstd, Tensor y, const AttentionTable& table, const RopeTensors& rope) const {
    Backend& backend = *model.backend;
    const int64_t d = model.config.head_dim;
    linear(kind, x, norm ? raw : y, false);
    if (norm) backend.rms_norm(queue, raw.split(d), norm, model.config.eps, y.split(d), rstd);
    backend.rope(queue, y.split(d), table.position, rope.cos, rope.sin, y.split(d), false);
  }
};

}  // namespace

ForwardState plan_forward(Arena& arena, const Model& model, int64_t rows, int64_t head_rows, int64_t rank, bool keep) {
  const ModelConfig& c = model.config;
  ForwardState state;
  const auto layer = [&] {
    LayerState s;
    s.x = arena.take({rows, c.hidden});
    s.x_mid = keep ? arena.take({rows, c.hidden}) : s.x;
    s.rstd_in = arena.take({rows});
    s.rstd_post = arena.take({rows});
    s.q = arena.take({rows, c.q_size()});
    s.k = arena.take({rows, c.kv_size()});
    s.v = arena.take({rows, c.kv_size()});
    if (c.qk_norm) {
      s.q_raw = arena.take({rows, c.q_size()});
      s.k_raw = arena.take({rows, c.kv_size()});
      s.rstd_q = arena.take({rows, c.heads});
      s.rstd_k = arena.take({rows, c.kv_heads});
    }
    s.attention = arena.take({rows, c.q_size()});
    if (keep) s.lse = arena.take({rows, c.heads});
    s.gate = arena.take({rows, c.intermediate});
    s.up = arena.take({rows, c.intermediate});
    for (Tensor& shrunk : s.shrunk)
      if (rank > 0) shrunk = arena.take({rows, rank});
    return s;
  };
  state.layers.push_back(layer());
  for (int64_t l = 1; l < c.layers; ++l) state.layers.push_back(keep ? layer() : state.layers[0]);
  state.x = keep ? arena.take({rows, c.hidden}) : state.layers[0].x;
  state.normed = arena.take({rows, c.hidden});
  state.activated = arena.take({rows, c.intermediate});
  state.head_x = arena.take({head_rows, c.hidden});
  state.head_rstd = arena.take({head_rows});
  state.head = arena.take({head_rows, c.hidden});
  state.workspace = arena.take({(workspace_bytes(model, rows) + 3) / 4});
  return state;
}

void forward(Queue& queue, Model& model, const ForwardLists& lists, std::span<const AdapterRun> runs, const RopeTensors& rope, const KvStore* kv,
             ForwardState& state) {
  Backend& backend = *model.backend;
  const ModelConfig& c = model.config;
  const int64_t d = c.head_dim;
  backend.embed(queue, model.embedding, lists.ids, state.layers[0].x);
  for (int64_t index = 0; index < c.layers; ++index) {
    const auto l = static_cast<size_t>(index);
    const Layer& layer = model.layers[l];
    LayerState& s = state.layers[l];
    const Tensor x_out = l + 1 < state.layers.size() ? state.layers[l + 1].x : state.x;
    const LayerPass pass{queue, model, index, runs, s, state.workspace};

    backend.rms_norm(queue, s.x, layer.input_norm, c.eps, state.normed, s.rstd_in);
    pass.heads(q_proj, layer.q_norm, state.normed, s.q_raw, s.rstd_q, s.q, lists.table, rope);
    pass.heads(k_proj, layer.k_norm, state.normed, s.k_raw, s.rstd_k, s.k, lists.table, rope);
    pass.linear(v_proj, state.normed, s.v, false);
    Tensor keys = s.k.split(d), values = s.v.split(d);
    if (kv) {
      backend.store_kv(queue, keys, lists.slot, kv->k[l]);
      backend.store_kv(queue, values, lists.slot, kv->v[l]);
      keys = kv->k[l];
      values = kv->v[l];
    }
    backend.attention(queue, s.q.split(d), keys, values, lists.table, s.attention.split(d), s.lse, state.workspace);

    if (s.x_mid.offset != s.x.offset) backend.copy(queue, s.x, s.x_mid);
    pass.linear(o_proj, s.attention, s.x_mid, true);
    backend.rms_norm(queue, s.x_mid, layer.post_norm, c.eps, state.normed, s.rstd_post);
    pass.linear(gate_proj, state.normed, s.gate, false);
    pass.linear(up_proj, state.normed, s.up, false);
    backend.swiglu(queue, s.gate, s.up, state.activated);
    if (x_out.offset != s.x_mid.offset) backend.copy(queue, s.x_mid, x_out);
    pass.linear(down_proj, state.activated, x_out, true);
  }
  backend.gather_rows(queue, state.x, lists.head_row, state.head_x);
  backend.rms_norm(queue, state.head_x, model.final_norm, c.eps, state.head, state.head_rstd);
}

}  // namespace cg
