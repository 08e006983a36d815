// The safetensors format: 8 bytes little-endian header length, a JSON header, the tensors' bytes.
//
// Reading is strict: the header begins with '{', keys are distinct, every tensor's range matches its dtype and shape, and the ranges cover the data
// without hole, overlap or trailing bytes. Two kinds of file that the reference library accepts are refused: a header with blanks before '{', and a name
// that stands twice. Header order is free; alignment is not required.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files.h"
#include "core/tensor.h"

namespace cg {

/// One tensor of a file; `dtype` is the format's word (F32, BF16, I64 …), `data` points into the mapping and need not be aligned.
struct StoredTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  const char* data = nullptr;
  int64_t bytes = 0;

  int64_t size() const;
};

class Safetensors {
 public:
  /// Maps and checks a file. Throws cg::Error{"E_CHECKPOINT"} that names the file and what is wrong with it.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in header order
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  const StoredTensor* find(std::string_view name) const;

 private:
  std::string path_;
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// Bits of one element of a dtype word, 0 when the word is unknown.
int dtype_bits(std::string_view dtype);

/// The values in float64, [size]. Throws E_CHECKPOINT when an integer has no exact float64, or for a dtype without a number (sub-byte floats).
std::vector<double> values_as_double(const StoredTensor&);

/// Values of an F32, F16 or BF16 tensor widened exactly to fp32, [size]. Throws E_CHECKPOINT for another dtype.
std::vector<float> values_as_float(const StoredTensor&);

struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  const float* data = nullptr;
  DType dtype = DType::f32;  // f32, bf16 or f16: rounded to when it is written
};

/// Writes tensors in the given order, the data beginning at a multiple of 8; the file appears whole or not at all. Throws cg::Error E_WRITE.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace cg
