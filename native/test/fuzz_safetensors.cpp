// fuzz-safetensors: reads the safetensors file that each line of standard input names, values too, and answers with a line: `read …` or the error's code and
// message. For builds with sanitizers, which end the program when a file makes the reader do what it must not.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "core/error.h"
#include "core/safetensors.h"

namespace {

std::string outcome(const std::string& path) {
  try {
    const cg::Safetensors file(path);
    double sum = 0;
    std::string types;
    for (const cg::StoredTensor& tensor : file.tensors()) {
      if (types.size() < 20) types += tensor.dtype + " ";
      if (file.find(tensor.name) != &tensor) return "a tensor is not found under its name";
      try {
        for (const double value : cg::values_as_double(tensor)) sum += value;
        if (tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16")
          for (const float value : cg::values_as_float(tensor)) sum += value;
      } catch (const cg::Error& error) {
        if (error.code() != "E_CHECKPOINT") return error.code() + " " + error.what();
        types += "unread ";
      }
    }
    return "read " + types + (sum == sum ? "" : "with NaN");
  } catch (const cg::Error& error) {
    return error.code() + " " + error.what();
  } catch (const std::exception& error) {
    return std::string("an exception: ") + error.what();
  }
}

}  // namespace

int main() {
  std::string path;
  while (std::getline(std::cin, path)) {
    std::string line = outcome(path);
    for (char& c : line)
      if (c == '\n' || c == '\r') c = ' ';
    std::puts(line.c_str());
    std::fflush(stdout);
  }
}
