#include "core/safetensors.h"

#include <algorithm>
#include <cstring>

#include "core/dtype.h"
#include "core/error.h"
#include "core/json.h"

namespace cg {
namespace {

constexpr uint64_t header_limit = 100'000'000;  // the reference library's

struct Word {
  const char* name;
  int bits;
};

constexpr Word words[] = {{"BOOL", 8},  {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"U16", 16}, {"I16", 16}, {"F16", 16},
                          {"BF16", 16}, {"U32", 32}, {"I32", 32}, {"F32", 32},    {"U64", 64},    {"I64", 64},    {"F64", 64}, {"C64", 64}};

class HeaderReader {
 public:
  HeaderReader(const std::string& path, uint64_t data_bytes) : path_(path), data_bytes_(data_bytes) {}

  [[noreturn]] void fail(const std::string& what) const { throw Error("E_CHECKPOINT", path_ + ": " + what); }

  std::vector<std::pair<std::string, std::string>> metadata(const Json& value) const {
    if (!value.is(Json::Type::object)) fail("__metadata__ is not an object of strings");
    std::vector<std::pair<std::string, std::string>> result;
    for (const auto& [key, text] : value.members) {
      if (!text.is(Json::Type::string)) fail("__metadata__." + json_quote(key) + " is not a string");
      result.emplace_back(key, text.text);
    }
    return result;
  }

  StoredTensor entry(const std::string& name, const Json& value, const char* data) const {
    const std::string what = "tensor " + json_quote(name) + ": ";
    if (!value.is(Json::Type::object)) fail(what + "its entry is not an object");
    StoredTensor tensor;
    tensor.name = name;

    const Json* dtype = value.find("dtype");
    if (!dtype || !dtype->is(Json::Type::string)) fail(what + "no dtype");
    const int bits = dtype_bits(dtype->text);
    if (bits == 0) fail(what + "unknown dtype " + json_quote(dtype->text));
    tensor.dtype = dtype->text;

    const Json* shape = value.find("shape");
    if (!shape || !shape->is(Json::Type::array)) fail(what + "no shape");
    uint64_t elements = 1;
    bool overflow = false;
    for (const Json& item : shape->items) {
      int64_t n;
      if (!item.integer(&n) || n < 0) fail(what + "a dimension is not a non-negative integer");
      tensor.shape.push_back(n);
      overflow |= __builtin_mul_overflow(elements, static_cast<uint64_t>(n), &elements);
    }
    uint64_t needed = 0;
    overflow |= __builtin_mul_overflow(elements, static_cast<uint64_t>(bits / 8), &needed);
    if (overflow) fail(what + "its shape has more elements than 64 bits can count");

    const Json* offsets = value.find("data_offsets");
    if (!offsets || !offsets->is(Json::Type::array)) fail(what + "no data_offsets");
    int64_t begin, end;
    if (offsets->items.size() != 2 || !offsets->items[0].integer(&begin) || !offsets->items[1].integer(&end) || begin < 0 || end < 0)
      fail(what + "data_offsets is not a pair of non-negative integers");
    if (end < begin) fail(what + "data_offsets end before they begin");
    if (static_cast<uint64_t>(end) > data_bytes_)
      fail(what + "its data ends at byte " + std::to_string(end) + ", but the file has " + std::to_string(data_bytes_) + " bytes of data: is it cut off?");
    if (static_cast<uint64_t>(end - begin) != needed)
      fail(what + tensor.dtype + " of this shape needs " + std::to_string(needed) + " bytes, its range has " + std::to_string(end - begin));
    tensor.data = data + begin;
    tensor.bytes = end - begin;
    return tensor;
  }

  // The ranges, in order of their beginnings, must follow each other from 0 to the end of the data.
  void check_cover(const std::vector<StoredTensor>& tensors, const char* data) const {
    std::vector<const StoredTensor*> order;
    for (const StoredTensor& t : tensors) order.push_back(&t);
    std::sort(order.begin(), order.end(),
              [](const StoredTensor* a, const StoredTensor* b) { return a->data != b->data ? a->data < b->data : a->bytes < b->bytes; });
    const char* expected = data;
    for (const StoredTensor* t : order) {
      if (t->data < expected) fail("tensor " + json_quote(t->name) + " overlaps another tensor's bytes");
      if (t->data > expected) fail(std::to_string(t->data - expected) + " bytes before tensor " + json_quote(t->name) + " belong to no tensor");
      expected = t->data + t->bytes;
    }
    const uint64_t used = static_cast<uint64_t>(expected - data);
    if (used != data_bytes_) fail(std::to_string(data_bytes_ - used) + " bytes after the last tensor belong to no tensor");
  }

 private:
  const std::string& path_;
  uint64_t data_bytes_;
};

}  // namespace

int dtype_bits(std::string_view dtype) {
  for (const Word& word : words)
    if (dtype == word.name) return word.bits;
  return 0;
}

int64_t StoredTensor::size() const { return elements(shape); }

Safetensors::Safetensors(const std::string& path) : path_(path), file_(path, "E_CHECKPOINT") {
  const auto fail = [&](const std::string& what) { throw Error("E_CHECKPOINT", path_ + ": " + what); };
  if (file_.size() < 8) fail("not a safetensors file: " + std::to_string(file_.size()) + " bytes, the header length alone has 8");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(file_.data()[i]);
  if (length > header_limit) fail("not a safetensors file: a header of " + std::to_string(length) + " bytes (the limit is 100000000)");
  if (length > file_.size() - 8) fail("the header has " + std::to_string(length) + " bytes, the file ends before that: is it cut off?");
  const std::string_view header = file_.text().substr(8, length);
  if (header.empty() || header[0] != '{') fail("the header does not begin with '{'");

  Json json;
  try {
    json = parse_json(header);
  } catch (const Error& error) {
    fail(std::string("header: ") + error.what());
  }
  const char* data = file_.data() + 8 + length;
  const HeaderReader reader(path_, file_.size() - 8 - length);
  for (const auto& [name, value] : json.members) {
    if (name == "__metadata__") metadata_ = reader.metadata(value);
    else tensors_.push_back(reader.entry(name, value, data));
  }
  reader.check_cover(tensors_, data);
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  for (const StoredTensor& t : tensors_)
    if (t.name == name) return &t;
  return nullptr;
}

namespace {

const char* word_of(DType dtype) { return dtype == DType::bf16 ? "BF16" : dtype == DType::f16 ? "F16" : "F32"; }

void write_values(AtomicFile& file, const NamedTensor& t) {
  const auto size = static_cast<uint64_t>(elements(t.shape));
  if (t.dtype == DType::f32) return file.write(t.data, size * 4);
  std::vector<uint16_t> part;
  for (uint64_t done = 0; done < size; done += part.size()) {
    part.resize(std::min<uint64_t>(size - done, uint64_t{1} << 20));
    for (size_t i = 0; i < part.size(); ++i) part[i] = round_to_half(t.data[done + i], t.dtype);
    file.write(part.data(), part.size() * 2);
  }
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (&key != &metadata[0].first) header += ',';
      header.append(json_quote(key)).append(":").append(json_quote(value));
    }
    header += "}";
  }
  uint64_t offset = 0;
  for (const NamedTensor& t : tensors) {
    std::string shape;
    for (const int64_t n : t.shape) {
      if (!shape.empty()) shape += ',';
      shape += std::to_string(n);
    }
    if (header.size() > 1) header += ',';
    header.append(json_quote(t.name)).append(":{\"dtype\":\"").append(word_of(t.dtype)).append("\",\"shape\":[").append(shape).append("],\"data_offsets\":[");
    header.append(std::to_string(offset)).append(",");
    offset += static_cast<uint64_t>(elements(t.shape) * size_of(t.dtype));
    header.append(std::to_string(offset)).append("]}");
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');

  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  AtomicFile file(path);
  file.write(length, 8);
  file.write(header.data(), header.size());
  for (const NamedTensor& t : tensors) write_values(file, t);
  file.commit();
}

}  // namespace cg
