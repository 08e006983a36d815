// bf16 and f16 as bits, and their exact widening to fp32.
#pragma once

#include <bit>
#include <cstdint>

#include "core/tensor.h"

namespace cg {

/// The value of a bf16 (the upper half of an fp32). Exact for every input, NaN payloads included.
inline float widen_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// The value of an IEEE binary16. Exact for every input; subnormals become normal fp32 numbers.
inline float widen_f16(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = float(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

/// The nearest bf16, ties to even; NaN stays a NaN.
inline uint16_t round_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The nearest binary16, ties to even; beyond 65504 + half a step it is infinite.
inline uint16_t round_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above
  if (magnitude < 0x38800000) {                       // below 2^-14: a multiple of 2^-24, rounded by an fp32 addition
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | uint16_t(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  return sign | uint16_t((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

/// `half`: bf16 or f16.
inline uint16_t round_to_half(float value, DType half) { return half == DType::bf16 ? round_to_bf16(value) : round_to_f16(value); }

/// What is left of a value that is stored so.
inline float rounded(float value, DType stored) {
  if (stored == DType::bf16) return widen_bf16(round_to_bf16(value));
  return stored == DType::f16 ? widen_f16(round_to_f16(value)) : value;
}

}  // namespace cg
