// exp, log and reductions over a row: the only ones in the backend. Plain arithmetic that the compiler vectorises; every instruction set gives the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "reference/isa.h"

namespace cg::reference {

/// e^x in fp32, at most 1 ulp off (checked for every float). −∞ and x < −104 give 0, x > 88.73 gives ∞, NaN stays NaN.
/// Method: x = n ln 2 + r with |r| ≤ ln 2 / 2 in two parts (Cody, Waite 1980), Cephes' polynomial of degree 7 for e^r (Moshier, expf), scaling by 2^n in two
/// steps.
CG_INLINE float exp_f(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  constexpr float round = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = x * 1.44269504f + round;
  const float n = shifted - round;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  const int32_t whole = int32_t(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(round));
  const int32_t half = whole >> 1, rest = whole - half;
  return p * std::bit_cast<float>(uint32_t(half + 127) << 23) * std::bit_cast<float>(uint32_t(rest + 127) << 23);
}

/// ln x in fp32, correctly rounded but for about one argument in a million. ln 0 = −∞, negative and NaN give NaN.
/// Method: x = 2^e m with m in [√½, √2); ln m = 2 artanh((m − 1) / (m + 1)) by its series, in double.
CG_INLINE float log_f(float x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  if (x == std::numeric_limits<float>::infinity()) return x;
  const uint64_t bits = std::bit_cast<uint64_t>(double(x));
  int64_t e = int64_t(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  if (m > 1.4142135623730951) { m *= 0.5; ++e; }
  const double s = (m - 1) / (m + 1), t = s * s;
  double series = 1.0 / 15;
  for (const double term : {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) series = series * t + term;
  return float(double(e) * 0.6931471805599453 + 2 * s * series);
}

/// Sums of a row run in 32 lanes (term j in lane j mod 32, ascending), then lanes join by halves: l += lane l + 16, … + 8, … + 4, … + 2, … + 1.
constexpr int lanes = 32;

CG_INLINE float join_lanes(float (&lane)[lanes]) {
  for (int half = lanes / 2; half >= 1; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

/// body(j) for j = 0 … n − 1, n a multiple of 32: no remainder that would run one by one.
template <class Body>
CG_INLINE void for_lanes(int64_t n, const Body& body) {
  for (int64_t j = 0; j < n; j += lanes)
    for (int l = 0; l < lanes; ++l) body(j + l);
}

template <class Term>
CG_INLINE float sum_of(int64_t n, const Term& term) {
  float lane[lanes] = {};
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (int l = 0; l < lanes; ++l) lane[l] += term(j + l);
  for (int l = 0; j + l < n; ++l) lane[l] += term(j + l);
  return join_lanes(lane);
}

/// The largest of a row, −∞ for none. NaN counts as −∞.
CG_INLINE float max_of(const float* x, int64_t n) {
  float lane[lanes];
  for (int l = 0; l < lanes; ++l) lane[l] = -std::numeric_limits<float>::infinity();
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (int l = 0; l < lanes; ++l) lane[l] = x[j + l] > lane[l] ? x[j + l] : lane[l];
  for (int l = 0; j + l < n; ++l) lane[l] = x[j + l] > lane[l] ? x[j + l] : lane[l];
  for (int half = lanes / 2; half >= 1; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
  return lane[0];
}

}  // namespace cg::reference
