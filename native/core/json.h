// A strict reader for the JSON that checkpoints carry: config.json, adapter_config.json, safetensors headers.
//
// RFC 8259 and no more: UTF-8 without byte-order mark, one value, no comments, no trailing commas, no NaN, no duplicate keys. A duplicate key is refused
// because readers disagree on which one counts, and a checkpoint must not depend on that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cg {

struct Json {
  enum class Type { null, boolean, number, string, array, object };

  Type type = Type::null;
  bool boolean = false;
  std::string text;  // a string's value; a number as it was written
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;  // in file order, keys distinct

  bool is(Type t) const { return type == t; }
  /// The member of that name, or null.
  const Json* find(std::string_view key) const;
  double number() const;
  /// True and the value when this is a number written as an integer that fits.
  bool integer(int64_t* value) const;
};

/// Throws cg::Error{"E_JSON"} that names the line and column and what stands there.
Json parse_json(std::string_view text);

/// Reads a whole file; errors have the given code and begin with the path.
Json read_json_file(const std::string& path, const std::string& code);

/// The text as a JSON string, quotes included.
std::string json_quote(std::string_view text);

}  // namespace cg
