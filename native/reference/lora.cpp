// LoRA factors in fp32 (Hu et al. 2021): A [r, K], B [N, r]; x [R, K], y [R, N], h [R, r].
//
//   shrink            h  = x Aᵀ            chain over K          expand            y  += scale · (h Bᵀ)    chain over r
//   expand backward   dh = scale · (dy B)  chain over N          shrink backward   dx += dh A              chain over r
//   gradient          out[p][q] = scale · Σ_rows left[row][p] right[row][q]: one chain per block of 256 rows, blocks joined by a binary tree
//
// Every chain ascends from 0. A factor is copied once into a panel whose width is a multiple of 16, filled up with zeros.
#include <algorithm>
#include <cstring>

#include "reference/reference_backend.h"
#include "reference/tile.h"

namespace cg::reference {

namespace {

/// The factor's transpose [n2][width], columns beyond n0 zero.
const float* transposed(const View<float>& factor, int64_t width) {
  float* to = scratch(0, factor.n2 * width);
  std::memset(to, 0, size_t(factor.n2 * width) * 4);
  for (int64_t j = 0; j < factor.n0; ++j)
    for (int64_t i = 0; i < factor.n2; ++i) to[i * width + j] = factor.row(j)[i];
  return to;
}

/// The factor itself [n0][width], columns beyond n2 zero.
const float* widened(const View<float>& factor, int64_t width) {
  if (factor.n2 == width && factor.s0 == width) return factor.data;
  float* to = scratch(0, factor.n0 * width);
  std::memset(to, 0, size_t(factor.n0 * width) * 4);
  for (int64_t i = 0; i < factor.n0; ++i) std::memcpy(to + i * width, factor.row(i), size_t(factor.n2) * 4);
  return to;
}

}  // namespace

// out (+)= scale · (x · factorᵀ), or of `factor` as it lies, for a block of rows at a time.
void ReferenceBackend::factor_product(const View<float>& x, const View<float>& factor, bool transpose, float scale, bool accumulate, const View<float>& out) {
  constexpr int64_t block = 64;
  const int64_t width = round_up(out.n2, 16);
  const float* b = transpose ? transposed(factor, width) : widened(factor, width);
  threads_.run((x.n0 + block - 1) / block, 1, 2.0 * double(x.n0 * x.n2 * width), [&](int64_t begin, int64_t end) {
    float* sums = scratch(1, block * width);
    for_isa([&](auto isa) CG_INLINE_LAMBDA {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r0 = task * block, rows = std::min(block, x.n0 - r0);
        tiles_wide<Chain::begin>(isa, rows, width, x.row(r0), x.s0, 1, Dense{b, width}, x.n2, sums, width);
        for (int64_t r = 0; r < rows; ++r) {
          const float* sum = sums + r * width;
          float* to = out.row(r0 + r);
          if (accumulate)
            for (int64_t j = 0; j < out.n2; ++j) to[j] += scale * sum[j];
          else
            for (int64_t j = 0; j < out.n2; ++j) to[j] = scale * sum[j];
        }
      }
    });
  });
}

void ReferenceBackend::lora_shrink(Queue& queue, Tensor x_t, Tensor a_t, Tensor h_t) {
  enqueue(queue, [&] {
    const auto x = view<float>(x_t), a = view<float>(a_t), h = view<float>(h_t);
    if (x.n0 == 0) return;
    CG_INVARIANT(x.n2 == a.n2 && h.n2 == a.n0 && x.n0 == h.n0);
    factor_product(x, a, true, 1, false, h);
  });
}

void ReferenceBackend::lora_expand(Queue& queue, Tensor h_t, Tensor b_t, float scale, Tensor y_t) {
  enqueue(queue, [&] {
    const auto h = view<float>(h_t), b = view<float>(b_t), y = view<float>(y_t);
    if (h.n0 == 0) return;
    CG_INVARIANT(h.n2 == b.n2 && y.n2 == b.n0 && h.n0 == y.n0);
    factor_product(h, b, true, scale, true, y);
  });
}

void ReferenceBackend::lora_expand_backward(Queue& queue, Tensor dy_t, Tensor b_t, float scale, Tensor dh_t) {
  enqueue(queue, [&] {
    const auto dy = view<float>(dy_t), b = view<float>(b_t), dh = view<float>(dh_t);
    if (dy.n0 == 0) return;
    CG_INVARIANT(dy.n2 == b.n0 && dh.n2 == b.n2 && dy.n0 == dh.n0);
    factor_product(dy, b, false, scale, false, dh);
  });
}

void ReferenceBackend::lora_shrink_backward(Queue& queue, Tensor dh_t, Tensor a_t, Tensor dx_t) {
  enqueue(queue, [&] {
    const auto dh = view<float>(dh_t), a = view<float>(a_t), dx = view<float>(dx_t);
    if (dh.n0 == 0) return;
    CG_INVARIANT(dh.n2 == a.n0 && dx.n2 == a.n2 && dh.n0 == dx.n0);
    factor_product(dh, a, false, 1, true, dx);
  });
}

void ReferenceBackend::lora_gradient(Queue& queue, Tensor left_t, Tensor right_t, float scale, Tensor out_t, Tensor) {
  enqueue(queue, [&] {
    const auto left = view<float>(left_t), right = view<float>(right_t), out = view<float>(out_t);
    CG_INVARIANT(left.n0 == right.n0 && (left.n0 == 0 || (left.n2 == out.n0 && right.n2 == out.n2)));
    if (out.n0 == 0 || out.n2 == 0) return;
    if (left.n0 > 0) return linear_gradient(left, right, scale, out);
    for (int64_t p = 0; p < out.n0; ++p) std::fill_n(out.row(p), out.n2, 0.0f);
  });
}

void ReferenceBackend::linear_gradient(const View<float>& left, const View<float>& right, float scale, const View<float>& out) {
  constexpr int64_t tall = 64, wide = 32, leaf = 256;
  const int64_t down = (out.n0 + tall - 1) / tall, across = (out.n2 + wide - 1) / wide, blocks = (left.n0 + leaf - 1) / leaf;
  int64_t levels = 1;
  while (int64_t{1} << (levels - 1) < blocks) ++levels;
  threads_.run(down * across, 1, 2.0 * double(left.n0 * out.n0 * out.n2), [&](int64_t begin, int64_t end) {
    float* sums = scratch(0, (levels + 1) * tall * wide);  // finished subtrees, the largest first
    float* padded = scratch(1, leaf * wide);
    for_isa([&](auto isa) CG_INLINE_LAMBDA {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t p0 = task / across * tall, q0 = task % across * wide, rows = std::min(tall, out.n0 - p0), columns = std::min(wide, out.n2 - q0);
        const auto join = [&](int64_t top) CG_INLINE_LAMBDA {  // the two last subtrees, the earlier one first
          float* into = sums + (top - 2) * tall * wide;
          const float* from = sums + (top - 1) * tall * wide;
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) into[i * wide + j] += from[i * wide + j];
        };
        int64_t top = 0;
        for (int64_t block = 0; block < blocks; ++block) {
          const int64_t r0 = block * leaf, depth = std::min(leaf, left.n0 - r0);
          float* leaf_sums = sums + top++ * tall * wide;
          const float* b = right.row(r0) + q0;
          int64_t b_step = right.s0;
          if (columns < wide) {
            std::memset(padded, 0, size_t(depth * wide) * 4);
            for (int64_t i = 0; i < depth; ++i) std::memcpy(padded + i * wide, b + i * b_step, size_t(columns) * 4);
            b = padded;
            b_step = wide;
          }
          if (columns <= 16) tiles<Chain::begin, 16>(isa, rows, left.row(r0) + p0, 1, left.s0, Dense{b, b_step}, depth, leaf_sums, wide);
          else tiles<Chain::begin, 32>(isa, rows, left.row(r0) + p0, 1, left.s0, Dense{b, b_step}, depth, leaf_sums, wide);
          for (int64_t merged = block + 1; merged % 2 == 0; merged /= 2) join(top--);
        }
        for (; top > 1; --top) join(top);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) out.row(p0 + i)[q0 + j] = scale * sums[i * wide + j];
      }
    });
  });
}

}  // namespace cg::reference
