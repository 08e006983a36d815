// Values of stored tensors, whatever their dtype.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "core/safetensors.h"

namespace cg {
namespace {

template <class T>
T at(const StoredTensor& t, int64_t i) {
  T value;
  std::memcpy(&value, t.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// A binary float of sign, e exponent bits and m fraction bits. IEEE keeps the largest exponent for infinities and NaN; E4M3 ("fn") has no infinity and one NaN.
double decode_float(unsigned bits, int e, int m, bool ieee) {
  const unsigned fraction = bits & ((1u << m) - 1), exponent = bits >> m & ((1u << e) - 1), top = (1u << e) - 1;
  const double sign = bits >> (e + m) & 1 ? -1 : 1;
  const int bias = (1 << (e - 1)) - 1;
  if (ieee && exponent == top) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (!ieee && exponent == top && fraction == (1u << m) - 1) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - m);
  return sign * std::ldexp(fraction + (1u << m), static_cast<int>(exponent) - bias - m);
}

template <class T>
double exact(const StoredTensor& t, int64_t i) {
  const T value = at<T>(t, i);
  const double result = static_cast<double>(value);
  const bool fits = result < std::ldexp(1.0, sizeof(T) * 8 - (std::numeric_limits<T>::is_signed ? 1 : 0));
  if (!fits || static_cast<T>(result) != value)
    throw Error("E_CHECKPOINT",
                "tensor " + json_quote(t.name) + ": element " + std::to_string(i) + " is " + std::to_string(value) + ", which float64 cannot hold exactly");
  return result;
}

double value_at(const StoredTensor& t, int64_t i) {
  const std::string& d = t.dtype;
  if (d == "F32") return at<float>(t, i);
  if (d == "F64") return at<double>(t, i);
  if (d == "BF16") return decode_float(at<uint16_t>(t, i), 8, 7, true);
  if (d == "F16") return decode_float(at<uint16_t>(t, i), 5, 10, true);
  if (d == "F8_E5M2") return decode_float(at<uint8_t>(t, i), 5, 2, true);
  if (d == "F8_E4M3") return decode_float(at<uint8_t>(t, i), 4, 3, false);
  if (d == "BOOL" || d == "U8") return at<uint8_t>(t, i);
  if (d == "I8") return at<int8_t>(t, i);
  if (d == "U16") return at<uint16_t>(t, i);
  if (d == "I16") return at<int16_t>(t, i);
  if (d == "U32") return at<uint32_t>(t, i);
  if (d == "I32") return at<int32_t>(t, i);
  if (d == "U64") return exact<uint64_t>(t, i);
  if (d == "I64") return exact<int64_t>(t, i);
  throw Error("E_CHECKPOINT", "tensor " + json_quote(t.name) + ": values of dtype " + d + " cannot be read");
}

}  // namespace

std::vector<double> values_as_double(const StoredTensor& t) {
  std::vector<double> values(static_cast<size_t>(t.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_at(t, static_cast<int64_t>(i));
  return values;
}

std::vector<float> values_as_float(const StoredTensor& t) {
  if (t.dtype != "F32" && t.dtype != "F16" && t.dtype != "BF16")
    throw Error("E_CHECKPOINT", "tensor " + json_quote(t.name) + ": dtype " + t.dtype + ", expected F32, F16 or BF16");
  std::vector<float> values(static_cast<size_t>(t.size()));
  if (values.empty()) return values;
  if (t.dtype == "F32") std::memcpy(values.data(), t.data, static_cast<size_t>(t.bytes));
  else
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(value_at(t, static_cast<int64_t>(i)));
  return values;
}

}  // namespace cg
