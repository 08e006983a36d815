// Scratch bytes of the reference backend's ops. Only the ops whose scratch grows with the batch need any.
#include "reference/head.h"
#include "reference/reference_backend.h"

namespace cg::reference {

int64_t ReferenceBackend::workspace(Op op, int64_t m, int64_t n, int64_t k) const {
  switch (op) {
    case Op::attention_backward: return m * n * 4;                      // δ of every row and head
    case Op::head_logp: case Op::sample: return head_chunk(m, n) * n * 4;  // logits
    case Op::head_backward: case Op::head_weight_gradient: return 2 * head_chunk(m, n) * n * 4;        // logits and their gradient
    case Op::sum_squares: return (m * n * k + 4095) / 4096 * 4;         // one sum per block
    case Op::rms_norm_weight_gradient: return (m + 255) / 256 * n * 4;  // one partial sum per block
    case Op::matmul: case Op::matmul_backward: case Op::attention: case Op::lora_gradient: return 0;
  }
  return 0;
}

}  // namespace cg::reference
