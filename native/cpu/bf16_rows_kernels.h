// Rows of x rounded to bf16, in the forms that gemm_tile.h multiplies, for one instruction set (for_each_isa.h). Integer arithmetic: denormals are rounded like
// any value, whatever the flags.
namespace cg::cpu::CG_ISA::bf16 {

/// The nearest bf16, ties to even, as the upper half; NaN stays a NaN. The bits of round_to_bf16.
CG_INLINE uint32_t rounded(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), nearest = bits + 0x7fff + (bits >> 16 & 1);
  return ((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : nearest) & 0xffff0000;
}

/// x [n] as Dot wants it: [(n + 1) / 2] lanes.
inline void round_to_lanes(const float* x, int64_t n, float* to) {
  for (int64_t i = 0; i < n / 2; ++i) to[i] = std::bit_cast<float>(rounded(x[2 * i]) >> 16 | rounded(x[2 * i + 1]));
  if (n % 2) to[n / 2] = std::bit_cast<float>(rounded(x[n - 1]) >> 16);
}

/// x [n] as Split and widened blocks want it: fp32, each pair the odd one first.
inline void round_and_swap(const float* x, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(rounded(x[i]));
  if (n % 2) to[n] = 0;
  for (int64_t i = 0; i < (n + 1) / 2; ++i) {  // halves of 64 bits change places: faster than a shuffle that the compiler finds
    uint64_t pair;
    std::memcpy(&pair, to + 2 * i, 8);
    pair = pair << 32 | pair >> 32;
    std::memcpy(to + 2 * i, &pair, 8);
  }
}

inline void round_rows(Way way, const float* x, int64_t x_stride, int64_t rows, int64_t n, float* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r, x += x_stride, to += to_stride) way == Way::dot ? round_to_lanes(x, n, to) : round_and_swap(x, n, to);
}

}  // namespace cg::cpu::CG_ISA::bf16
