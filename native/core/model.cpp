#include "core/model.h"

#include <algorithm>

#include "core/error.h"
#include "core/rope_table.h"

namespace cg {
namespace {

constexpr const char* paths[linear_kinds] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                                             "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

constexpr int64_t smallest_table = 4096;  // positions

Tensor table_of(BufferId buffer, int64_t offset, int64_t rows, int64_t columns) {
  Tensor t;
  t.buffer = buffer;
  t.offset = offset;
  t.rank = 2;
  t.shape = {rows, columns, 1, 1};
  t.strides = {columns, 1, 1, 1};
  return t;
}

}  // namespace

const char* path_of(LinearKind kind) { return paths[kind]; }

const char* name_of(LinearKind kind) {
  const char* path = paths[kind];
  while (*path != '.') ++path;
  return path + 1;
}

void Model::check_id(int64_t id) const {
  if (id < 0 || id >= real_vocab)
    throw Error("E_VOCABULARY", "token id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(real_vocab) +
                                    ": was the text encoded with this model's tokenizer?");
}

RopeTensors Model::rope(Queue& queue, int64_t positions) {
  if (positions > config.max_positions)
    throw Error("E_CONTEXT",
                "position " + std::to_string(positions - 1) + " is beyond the model's context of " + std::to_string(config.max_positions) + " tokens");
  const std::lock_guard lock(mutex_);
  for (const Table& table : tables_)
    if (table.positions >= positions) return table.tensors;

  int64_t size = smallest_table;
  while (size < positions) size *= 2;
  size = std::min(size, config.max_positions);
  const int64_t half = config.head_dim / 2;
  std::vector<float> cos, sin;
  append_rope_rows(inverse_frequencies(config.rope, config.head_dim), 0, size, &cos, &sin);
  const int64_t bytes = (size * half * 4 + 63) / 64 * 64;
  const BufferId buffer = backend->arena(2 * bytes);
  Table table{size, {table_of(buffer, 0, size, half), table_of(buffer, bytes, size, half)}};
  backend->upload(queue, cos.data(), table.tensors.cos);
  backend->upload(queue, sin.data(), table.tensors.sin);
  backend->wait(queue);  // other queues may use it from now on
  tables_.push_back(table);
  return table.tensors;
}

}  // namespace cg
