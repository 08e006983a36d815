// The seam between the engine and what computes for it.
//
// Core knows the model, the adapter, the token trie, the loss and the sampler's schedule; a backend knows memory and arithmetic. Everything a GPU needs is
// in this contract already, and `reference-remote` (the reference backend behind memory that core cannot touch, on a thread that lags) proves in the tests that core keeps it:
//
//   - Core never dereferences a Tensor. Bytes cross by `upload` and `download` alone.
//   - Every op is enqueued on a Queue, runs in order and returns at once. Only `download` and `wait` block, and errors of earlier ops surface there as cg::Error.
//   - No op allocates. An op that needs scratch takes a `workspace` tensor of at least `workspace(...)` bytes.
//   - Per-batch lists are i32/i64 arrays uploaded once and taken whole: no host loop over tokens, no callback.
//   - Ops on rows give the same bits for a row whatever else is in the batch, on whatever number of threads (numerics.md).
//
// Shapes: R rows (tokens of a batch), H hidden, N outputs, K inputs, r rank of the adapter, NH query heads, NK key/value heads, D head dimension, S slots of
// the key/value store, E loss entries, V vocabulary. All activations are fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/sampling.h"
#include "core/tensor.h"

namespace cg {

/// Keys and values are stored in pages of this many absolute positions, and attention walks them in tiles cut at its multiples.
constexpr int64_t page_size = 64;

/// An ordered stream of ops. One per host thread; made by `Backend::queue`.
class Queue {
 public:
  virtual ~Queue() = default;
};

/// Which keys each query row sees, as device arrays.
///
/// Row i at absolute position position[i] sees the slots gather[table[i] + j] for absolute positions first[i] + j, j = 0 .. position[i] − first[i]. A trie's
/// rows share their ancestors' slots this way, wherever those are stored; a sampler's rows point into its pages.
struct AttentionTable {
  Tensor position;     // [R] i32
  Tensor first;        // [R] i32, absolute position of the sequence's first token
  Tensor table;        // [R] i32, where the row's list begins in `gather`
  Tensor gather;       // [*] i32, slots by position
  Tensor subtree_end;  // [R] i32, training only: slot i is seen by exactly the query rows i .. subtree_end[i] − 1 (depth-first order); slot = row
};

/// Which log-probabilities are wanted. Entry e: log softmax(logits[row[e]] / temperature[e])[target[e]]; a row may have several.
struct LossEntries {
  Tensor row;          // [E] i32, index into the head's input rows, ascending
  Tensor target;       // [E] i32
  Tensor temperature;  // [E] f32, > 0
};

/// Rows to sample from, all [M]: one token each.
struct SampleRows {
  Tensor row;          // [M] i32, index into the head's input rows (a group's members share the prompt's last row)
  Tensor params;       // [M, SampleParams::fields] f32, see sampling.h
  Tensor keys;         // [M, 3] u64: seed, rollout, position
  Tensor seen_offset;  // [M + 1] i32 into `seen`
  Tensor seen;         // [*] i32, distinct earlier ids of the row, for the repetition penalty; empty where the penalty is 1
};

struct AdamW {
  double lr, beta1, beta2, eps, weight_decay;  // a backend derives its fp32 constants from these: 1 − 0.999f is off by 5e-5
  int64_t step;       // 1 for the first update, for the bias correction
  double grad_scale;  // gradients are multiplied by this first (clipping)
};

enum class Op {
  matmul, matmul_backward, attention, attention_backward, head_logp, head_backward, sample, lora_gradient, sum_squares, rms_norm_weight_gradient,
  head_weight_gradient
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// Family of log-prob bits and precision of the frozen products, e.g. "ref-2/fp32": two backends of one kind give the same bits for the same row.
  virtual std::string logprob_kind() const = 0;
  /// For messages and records: device and instruction set in words.
  virtual std::string description() const = 0;

  // ---- memory ----
  virtual std::unique_ptr<Queue> queue() = 0;
  /// A block of at least `bytes`, aligned to 64. Throws cg::Error{"E_MEMORY"} when there is none.
  virtual BufferId arena(int64_t bytes) = 0;
  virtual void release(BufferId) = 0;
  virtual void upload(Queue&, const void* host, Tensor to) = 0;      // `host` may be reused at once; `to` is contiguous
  virtual void download(Queue&, Tensor from, void* host) = 0;        // blocks; `from` is contiguous
  virtual void fill(Queue&, Tensor, float value) = 0;                // f32 and integer tensors
  virtual void copy(Queue&, Tensor from, Tensor to) = 0;             // same shape; strides may differ in all but the last dimension
  virtual void wait(Queue&) = 0;
  /// A frozen parameter: `host` is dense, row-major, of `dtype` f32, bf16 or f16; kept or packed as the backend likes. rank 1 or 2 ([N, K] as checkpoints store it).
  virtual Weight load_weight(const std::string& name, const void* host, DType dtype, std::span<const int64_t> shape) = 0;
  virtual void release(Weight) = 0;
  /// Gives a loaded weight the values of `values` (f32, of its shape), each rounded to `dtype` first (f32: as it is): it is then what load_weight would make
  /// of a checkpoint that stores them so. No op of another queue may use the weight meanwhile.
  virtual void set_weight(Queue&, Weight, Tensor values, DType dtype) = 0;
  /// Scratch bytes of an op whose sizes are m, n, k (rows, outputs, inputs; for attention R, NH, D; for the head M or E, V, H; for a norm its rows times
  /// heads, n, 1).
  virtual int64_t workspace(Op, int64_t m, int64_t n, int64_t k) const = 0;

  // ---- rows ----
  virtual void embed(Queue&, Weight table, Tensor ids /*[R] i32*/, Tensor y /*[R,H]*/) = 0;
  virtual void gather_rows(Queue&, Tensor x /*[*,H]*/, Tensor index /*[M] i32*/, Tensor y /*[M,H]*/) = 0;
  virtual void scatter_rows(Queue&, Tensor x /*[M,H]*/, Tensor index /*[M] i32, distinct*/, Tensor y /*[*,H]*/) = 0;  // y[index] = x
  virtual void add(Queue&, Tensor x, Tensor y) = 0;  // y += x, same shape

  /// y = x / sqrt(mean x² + eps) · w over the last dimension of [rows, n] or [R, heads, D]; rstd one per row kept for the backward pass (may be none).
  virtual void rms_norm(Queue&, Tensor x, Weight w, float eps, Tensor y, Tensor rstd) = 0;
  virtual void rms_norm_backward(Queue&, Tensor dy, Tensor x, Weight w, Tensor rstd, Tensor dx, bool accumulate) = 0;
  /// Rotates pairs (j, j + D/2) of x [R, heads, D] by the angle of position[i]; cos, sin [P, D/2] indexed by position; `inverse` is its transpose. x and y may be the same.
  virtual void rope(Queue&, Tensor x, Tensor position, Tensor cos, Tensor sin, Tensor y, bool inverse) = 0;
  virtual void swiglu(Queue&, Tensor gate, Tensor up, Tensor y) = 0;  // y = gate · sigmoid(gate) · up
  virtual void swiglu_backward(Queue&, Tensor dy, Tensor gate, Tensor up, Tensor dgate, Tensor dup) = 0;

  // ---- frozen linears: y [R,N] (+)= x [R,K] · Wᵀ + bias ----
  virtual void matmul(Queue&, Tensor x, Weight w, Weight bias, Tensor y, bool accumulate, Tensor workspace) = 0;
  virtual void matmul_backward(Queue&, Tensor dy /*[R,N]*/, Weight w, Tensor dx /*[R,K]*/, bool accumulate, Tensor workspace) = 0;

  // ---- LoRA factors, fp32, A [r,K], B [N,r]; core calls these per run of rows with one adapter ----
  virtual void lora_shrink(Queue&, Tensor x /*[R,K]*/, Tensor a, Tensor h /*[R,r]*/) = 0;                     // h = x · Aᵀ
  virtual void lora_expand(Queue&, Tensor h, Tensor b, float scale, Tensor y /*[R,N]*/) = 0;                  // y += scale · h · Bᵀ
  virtual void lora_expand_backward(Queue&, Tensor dy, Tensor b, float scale, Tensor dh) = 0;                 // dh = scale · dy · B
  virtual void lora_shrink_backward(Queue&, Tensor dh, Tensor a, Tensor dx) = 0;                              // dx += dh · A
  /// out [p,q] = scale · Σ_rows left[row,p] · right[row,q]: partial sums over blocks of 256 consecutive rows (one ascending chain each), joined by a binary tree.
  /// dA = lora_gradient(dh, x, 1), dB = lora_gradient(dy, h, scale). It is the gradient of any linear: dW = lora_gradient(dy, x, 1), and with x a column of
  /// ones that of its bias.
  virtual void lora_gradient(Queue&, Tensor left, Tensor right, float scale, Tensor out, Tensor workspace) = 0;

  // ---- attention: one op for decode, prefill and training ----
  /// kv [S, NK, D]: writes row i of x [R, NK, D] to slot[i]. A store of keys may lie by pages instead, [S / page_size, NK, D, page_size], slot s being column
  /// s mod page_size of page s div page_size: attention then reads a page's keys where they are. The bits are the same.
  virtual void store_kv(Queue&, Tensor x, Tensor slot /*[R] i32*/, Tensor kv) = 0;
  /// k as store_kv has it, v [S, NK, D]. out [R, NH, D] = softmax(q · kᵀ / √D) · v over the table's slots, walked in tiles of `page_size` absolute positions;
  /// lse [R, NH] (may be none).
  virtual void attention(Queue&, Tensor q, Tensor k, Tensor v, const AttentionTable&, Tensor out, Tensor lse, Tensor workspace) = 0;
  /// dq, dk, dv are written. dk[slot], dv[slot] sum over the query rows slot .. subtree_end[slot] − 1 in ascending order.
  virtual void attention_backward(Queue&, Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, const AttentionTable&, Tensor dq, Tensor dk, Tensor dv,
                                  Tensor workspace) = 0;

  // ---- head: logits are computed in row chunks and never kept; rows of the vocabulary from `real_vocab` on count as −∞ ----
  virtual void head_logp(Queue&, Tensor h /*[M,H]*/, Weight head, int64_t real_vocab, const LossEntries&, Tensor logp /*[E]*/, Tensor entropy /*[E] or none*/, Tensor workspace) = 0;
  /// dh [M,H] = Σ_e coefficient[e] · d logp[e] / d h[row[e]].
  virtual void head_backward(Queue&, Tensor h, Weight head, int64_t real_vocab, const LossEntries&, Tensor coefficient /*[E]*/, Tensor dh, Tensor workspace) = 0;
  /// ids [M] i32 and log-probs [M] (of the temperature-scaled distribution, before penalty and cuts).
  virtual void sample(Queue&, Tensor h, Weight head, int64_t real_vocab, const SampleRows&, Tensor ids, Tensor logp, Tensor workspace) = 0;

  // ---- gradients of the other parameters, for training a whole model ----
  /// dw [n] = Σ dy · (x · rstd) over the rows of [rows, n] or the heads of all rows of [R, heads, n]: partial sums over blocks of 256 consecutive ones, joined
  /// by a binary tree, as lora_gradient has them.
  virtual void rms_norm_weight_gradient(Queue&, Tensor dy, Tensor x, Tensor rstd, Tensor dw, Tensor workspace) = 0;
  /// out[ids[i]] += dx[i] for i ascending. out [V,H] holds what is added to: zeros, or the head's gradient where the two are tied.
  virtual void embed_gradient(Queue&, Tensor ids /*[R] i32*/, Tensor dx /*[R,H]*/, Tensor out) = 0;
  /// out [V,H] = Σ_e coefficient[e] · d logp[e] / d head: one chain over the rows of h ascending; 0 in the rows of padding.
  virtual void head_weight_gradient(Queue&, Tensor h, Weight head, int64_t real_vocab, const LossEntries&, Tensor coefficient, Tensor out,
                                    Tensor workspace) = 0;

  // ---- optimiser, on flat fp32 spans ----
  virtual void scale(Queue&, Tensor x, float factor) = 0;
  virtual void sum_squares(Queue&, Tensor x, Tensor out /*[1]*/, Tensor workspace) = 0;  // fixed tree over blocks of 4096
  virtual void adamw(Queue&, const AdamW&, Tensor p, Tensor g, Tensor m, Tensor v) = 0;
};

/// The readable twin that every other backend is compared with. threads = 0: as many as there are cores. precision of the frozen products: f32 or bf16.
std::unique_ptr<Backend> make_reference_backend(int threads, DType precision = DType::f32);
/// The same arithmetic behind memory that is PROT_NONE outside its ops, on a thread of its own that delays each op by `delay_us`.
std::unique_ptr<Backend> make_reference_remote_backend(int threads, int delay_us, DType precision = DType::f32);
/// What people run on a CPU: the reference's bits, from kernels that are written for speed.
std::unique_ptr<Backend> make_cpu_backend(int threads, DType precision = DType::f32);

}  // namespace cg
