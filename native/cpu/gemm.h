// Products of rows with packed weights: what a kernel is told (gemm_kernels.h), and who calls it (gemm.cpp).
#pragma once

#include <cstdint>

#include "cpu/panels.h"
#include "reference/reference_backend.h"

namespace cg::cpu {

/// y [rows, outputs] (+)= x · Wᵀ + bias.
struct Product {
  const Panels* w;
  const float* x;  // rows x_stride apart, in the form that the kernel's step wants
  int64_t x_stride;
  int64_t inputs, outputs;  // of w, from its first on: all of them, or fewer (a vocabulary without its padding)
  const float* bias;        // [outputs] or none
  bool accumulate;          // y + that
  float* y;
  int64_t y_stride;
};

/// The first rows of a product, at most piece_rows, and a range of groups of outputs: what one thread does by itself.
struct Piece {
  int64_t rows, group_begin, group_end;
};

/// The kernel of a product, and with it the form of x (gemm_tile.h). All of bf16 give the same bits.
enum class Way {
  fp32,
  split,  // bf16, two fused steps for a pair
  widen,  // bf16, blocks of w widened first: for many rows
  dot,    // bf16, VDPBF16PS
};

/// Rows of a piece at most: with a block of weights they stay in the second-level cache.
constexpr int64_t piece_rows = 128;
/// Inputs of a block of weights at most.
constexpr int64_t block_depth = 1536;
/// Groups of outputs whose chains are put aside at a time, where a product has several blocks of inputs.
constexpr int64_t groups_aside = 16;

/// Rows that count as few: their weights are read once, as they lie.
constexpr int64_t few_rows = 8;

/// One piece in the instruction set in use. partial: room for [groups_aside][piece_rows][48]; widened: for [block_depth][48], or none but for Way::widen.
void run_piece(Way, const Product&, const Piece&, float* partial, float* widened);
/// Rows of x [n] in bf16, in the form of `way`, to_stride floats apart.
void round_rows(Way, const float* x, int64_t x_stride, int64_t rows, int64_t n, float* to, int64_t to_stride);
constexpr int64_t rounded_stride(Way way, int64_t n) { return (n + 1) / 2 * (way == Way::dot ? 1 : 2); }

/// y (+)= x · Wᵀ + bias for the first y.n2 outputs and the first x.n2 inputs of w, shared among the threads.
void multiply(reference::Threads&, const reference::View<float>& x, const Panels& w, const float* bias, bool accumulate, const reference::View<float>& y);

}  // namespace cg::cpu
