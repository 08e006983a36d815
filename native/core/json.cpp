#include "core/json.h"

#include <charconv>
#include <unordered_set>

#include "core/error.h"
#include "core/files.h"

namespace cg {
namespace {

constexpr int max_depth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json document() {
    check_utf8();
    blanks();
    Json value = parse(0);
    blanks();
    if (at_ < text_.size()) fail("text after the end of the JSON value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    throw Error("E_JSON", "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what);
  }

  // RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
  void check_utf8() {
    for (size_t i = 0; i < text_.size();) {
      const auto c = static_cast<unsigned char>(text_[i]);
      const int n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
      bool good = n > 0 && i + n <= text_.size();
      for (int j = 1; good && j < n; ++j) good = (static_cast<unsigned char>(text_[i + j]) & 0xC0) == 0x80;
      if (good && n > 2) {
        const auto d = static_cast<unsigned char>(text_[i + 1]);
        good = !(c == 0xE0 && d < 0xA0) && !(c == 0xED && d >= 0xA0) && !(c == 0xF0 && d < 0x90) && !(c == 0xF4 && d >= 0x90);
      }
      if (!good) {
        at_ = i;
        fail("not UTF-8");
      }
      i += n;
    }
  }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) fail("not a JSON value");
    at_ += w.size();
  }

  Json parse(int depth) {
    if (depth > max_depth) fail("nested more than " + std::to_string(max_depth) + " deep");
    if (at_ >= text_.size()) fail("the text ends where a value should be");
    Json value;
    switch (text_[at_]) {
      case '{': return object(depth);
      case '[': return array(depth);
      case '"':
        value.type = Json::Type::string;
        value.text = string();
        return value;
      case 't':
        word("true");
        value.boolean = true;
        value.type = Json::Type::boolean;
        return value;
      case 'f':
        word("false");
        value.type = Json::Type::boolean;
        return value;
      case 'n': word("null"); return value;
      default: return number();
    }
  }

  Json object(int depth) {
    Json value;
    value.type = Json::Type::object;
    ++at_;
    blanks();
    if (take('}')) return value;
    std::unordered_set<std::string> seen;
    do {
      blanks();
      if (at_ >= text_.size() || text_[at_] != '"') fail("expected a key in double quotes");
      const size_t start = at_;
      std::string key = string();
      if (!seen.insert(key).second) {
        at_ = start;
        fail("the key " + json_quote(key) + " stands twice in one object");
      }
      blanks();
      if (!take(':')) fail("expected ':' after the key " + json_quote(key));
      blanks();
      value.members.emplace_back(std::move(key), parse(depth + 1));
      blanks();
    } while (take(','));
    if (!take('}')) fail("expected ',' or '}'");
    return value;
  }

  Json array(int depth) {
    Json value;
    value.type = Json::Type::array;
    ++at_;
    blanks();
    if (take(']')) return value;
    do {
      blanks();
      value.items.push_back(parse(depth + 1));
      blanks();
    } while (take(','));
    if (!take(']')) fail("expected ',' or ']'");
    return value;
  }

  Json number() {
    Json value;
    value.type = Json::Type::number;
    const size_t start = at_;
    const auto digits = [&] {
      const size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ > first;
    };
    take('-');
    if (take('0')) {
      if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') fail("a number may not begin with 0");
    } else if (!digits()) {
      at_ = start;
      fail("not a JSON value");
    }
    if (take('.') && !digits()) fail("a digit must follow the decimal point");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) fail("a digit must follow the exponent");
    }
    value.text = text_.substr(start, at_ - start);
    return value;
  }

  unsigned hex4() {
    unsigned code = 0;
    if (at_ + 4 > text_.size()) fail("\\u needs four hexadecimal digits");
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) fail("\\u needs four hexadecimal digits");
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return code;
  }

  static void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | code >> 12);
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      out += static_cast<char>(0xF0 | code >> 18);
      out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }

  void escape(std::string& out) {
    if (at_ >= text_.size()) fail("the text ends inside a string");
    switch (text_[at_++]) {
      case '"': out += '"'; return;
      case '\\': out += '\\'; return;
      case '/': out += '/'; return;
      case 'b': out += '\b'; return;
      case 'f': out += '\f'; return;
      case 'n': out += '\n'; return;
      case 'r': out += '\r'; return;
      case 't': out += '\t'; return;
      case 'u': {
        unsigned code = hex4();
        if (code >= 0xDC00 && code < 0xE000) fail("a lone surrogate");
        if (code >= 0xD800 && code < 0xDC00) {
          if (text_.substr(at_, 2) != "\\u") fail("a lone surrogate");
          at_ += 2;
          const unsigned low = hex4();
          if (low < 0xDC00 || low >= 0xE000) fail("a lone surrogate");
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        return append_utf8(out, code);
      }
      default: fail("unknown escape");
    }
  }

  std::string string() {
    std::string out;
    ++at_;
    while (true) {
      if (at_ >= text_.size()) fail("the text ends inside a string");
      const char c = text_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character inside a string");
      ++at_;
      if (c == '\\') escape(out);
      else out += c;
    }
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

double Json::number() const {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool Json::integer(int64_t* value) const {
  if (type != Type::number) return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

Json parse_json(std::string_view text) { return Parser(text).document(); }

Json read_json_file(const std::string& path, const std::string& code) {
  const std::string text = read_file(path, code);
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw Error(code, path + ": " + error.what());
  }
}

std::string json_quote(std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\n') out += "\\n";
    else if (u < 0x20) (out += "\\u00") += {hex[u >> 4], hex[u & 15]};
    else out += c;
  }
  return out + '"';
}

}  // namespace cg
