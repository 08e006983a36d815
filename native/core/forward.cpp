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
  const LayerState& state;
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

  /// x_mid = x + o(attention(q, k, v)), projections of norm(x).
  void attention(const ForwardLists& lists, const RopeTensors& rope, const KvStore* kv, Tensor normed) const {
    Backend& backend = *model.backend;
    const ModelConfig& c = model.config;
    const auto l = static_cast<size_t>(index);
    const Layer& layer = model.layers[l];
    const LayerState& s = state;
    backend.rms_norm(queue, s.x, layer.input_norm, c.eps, normed, s.rstd_in);
    heads(q_proj, layer.q_norm, normed, s.q_raw, s.rstd_q, s.q, lists.table, rope);
    heads(k_proj, layer.k_norm, normed, s.k_raw, s.rstd_k, s.k, lists.table, rope);
    linear(v_proj, normed, s.v, false);
    Tensor keys = s.k.split(c.head_dim), values = s.v.split(c.head_dim);
    if (kv) {
      backend.store_kv(queue, keys, lists.slot, kv->k[l]);
      backend.store_kv(queue, values, lists.slot, kv->v[l]);
      keys = kv->k[l];
      values = kv->v[l];
    }
    backend.attention(queue, s.q.split(c.head_dim), keys, values, lists.table, s.attention.split(c.head_dim), s.lse, workspace);
    if (s.x_mid.offset != s.x.offset) backend.copy(queue, s.x, s.x_mid);
    linear(o_proj, s.attention, s.x_mid, true);
  }

  /// gate and up of norm(x_mid).
  void gate_and_up(Tensor normed) const {
    model.backend->rms_norm(queue, state.x_mid, model.layers[static_cast<size_t>(index)].post_norm, model.config.eps, normed, state.rstd_post);
    linear(gate_proj, normed, state.gate, false);
    linear(up_proj, normed, state.up, false);
  }
};

}  // namespace

const char* name_of(Keep keep) {
  switch (keep) {
    case Keep::nothing: return "nothing";
    case Keep::everything: return "everything";
    case Keep::all_but_mlp: return "all-but-mlp";
    case Keep::layer_inputs: return "layer-inputs";
  }
  return "";
}

ForwardState plan_forward(Arena& arena, const Model& model, int64_t rows, int64_t head_rows, int64_t rank, Keep keep) {
  const ModelConfig& c = model.config;
  const bool train = keep != Keep::nothing;
  ForwardState state;
  state.keep = keep;
  const auto mlp = [&](LayerState& s) {
    s.gate = arena.take({rows, c.intermediate});
    s.up = arena.take({rows, c.intermediate});
  };
  const auto attention = [&](LayerState& s) {
    s.x_mid = train ? arena.take({rows, c.hidden}) : s.x;
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
    if (train) s.lse = arena.take({rows, c.heads});
    for (Tensor& shrunk : s.shrunk)
      if (rank > 0) shrunk = arena.take({rows, rank});
  };
  for (int64_t l = 0; l < c.layers; ++l) {  // each a copy of the first one, but for what it keeps
    LayerState s = l == 0 ? LayerState{} : state.layers[0];
    if (l == 0 || train) s.x = arena.take({rows, c.hidden});
    if (l == 0 || keep == Keep::everything || keep == Keep::all_but_mlp) attention(s);
    else if (keep == Keep::layer_inputs && rank > 0) s.shrunk[down_proj] = arena.take({rows, rank});  // restore_layer stops before down
    if (l == 0 || keep == Keep::everything) mlp(s);
    state.layers.push_back(s);
  }
  state.x = train ? arena.take({rows, c.hidden}) : state.layers[0].x;
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
  backend.embed(queue, model.embedding, lists.ids, state.layers[0].x);
  for (int64_t index = 0; index < c.layers; ++index) {
    const auto l = static_cast<size_t>(index);
    const LayerState& s = state.layers[l];
    const Tensor x_out = l + 1 < state.layers.size() ? state.layers[l + 1].x : state.x;
    const LayerPass pass{queue, model, index, runs, s, state.workspace};
    pass.attention(lists, rope, kv, state.normed);
    pass.gate_and_up(state.normed);
    backend.swiglu(queue, s.gate, s.up, state.activated);
    if (x_out.offset != s.x_mid.offset) backend.copy(queue, s.x_mid, x_out);
    pass.linear(down_proj, state.activated, x_out, true);
  }
  backend.gather_rows(queue, state.x, lists.head_row, state.head_x);
  backend.rms_norm(queue, state.head_x, model.final_norm, c.eps, state.head, state.head_rstd);
}

void restore_layer(Queue& queue, Model& model, const ForwardLists& lists, std::span<const AdapterRun> runs, const RopeTensors& rope, const ForwardState& state,
                   int64_t layer) {
  if (state.keep == Keep::everything || layer + 1 == model.config.layers) return;  // the last layer's tensors are still there
  const LayerPass pass{queue, model, layer, runs, state.layers[static_cast<size_t>(layer)], state.workspace};
  if (state.keep == Keep::layer_inputs) pass.attention(lists, rope, nullptr, state.normed);
  pass.gate_and_up(state.normed);
}

}  // namespace cg
