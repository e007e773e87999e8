// A flat JSON object: what a specification is read from and what lines are written with.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace wattwire {

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

// A value as it will stand in a line.
struct Scalar {
  std::string json = "null";
  Scalar() = default;
  Scalar(const char* text) : json(quoted(text)) {}
  Scalar(const std::string& text) : json(quoted(text)) {}
  Scalar(bool value) : json(value ? "true" : "false") {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Scalar(T value) : json(std::to_string(value)) {}
};

using Fields = std::vector<std::pair<std::string, std::string>>;  // name and JSON text

inline std::string object(const Fields& fields) {
  std::string out = "{";
  for (const auto& [name, json] : fields)
    out += (out.size() > 1 ? ", " : "") + quoted(name) + ": " + json;
  return out + "}";
}

struct Value {
  enum Kind { kString, kInteger, kBoolean, kList, kOther };
  Kind kind = kOther;
  std::string text;
  int64_t integer = 0;
  bool boolean = false;
  std::vector<Value> items;
  std::string source;  // as it stood in the file, for messages
};

class FlatJson {
 public:
  explicit FlatJson(std::string text) : text_(std::move(text)) {}

  // Throws std::invalid_argument where the text is not one JSON object of scalars and lists.
  std::map<std::string, Value> read() {
    std::map<std::string, Value> found;
    need('{');
    if (!take('}')) {
      do {
        space();
        std::string key = string();
        need(':');
        found[key] = value(true);
      } while (take(','));
      need('}');
    }
    space();
    if (at_ != text_.size()) wrong("the end");
    return found;
  }

  // The text as one JSON string.
  std::string text() {
    std::string found = string();
    if (at_ != text_.size()) wrong("the end");
    return found;
  }

 private:
  [[noreturn]] void wrong(const std::string& wanted) const {
    throw std::invalid_argument("at byte " + std::to_string(at_) + ": expected " + wanted);
  }
  void space() {
    while (at_ < text_.size() && std::string(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) wrong(std::string("'") + c + "'");
  }

  Value value(bool list_allowed) {
    space();
    Value result;
    size_t begin = at_;
    char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"') {
      result.kind = Value::kString;
      result.text = string();
    } else if (c == '[' && list_allowed) {
      result.kind = Value::kList;
      need('[');
      if (!take(']')) {
        do result.items.push_back(value(false));
        while (take(','));
        need(']');
      }
    } else {
      word(&result);
    }
    result.source = text_.substr(begin, at_ - begin);
    return result;
  }

  void word(Value* result) {
    size_t begin = at_;
    at_ = text_.find_first_not_of("+-.0123456789abcdefghijklmnopqrstuvwxyzE", at_);
    if (at_ == std::string::npos) at_ = text_.size();
    std::string found = text_.substr(begin, at_ - begin);
    if (found == "true" || found == "false") {
      result->kind = Value::kBoolean;
      result->boolean = found == "true";
      return;
    }
    if (found == "null") return;
    size_t digits = found.rfind('-', 0) == 0 ? 1 : 0;
    if (!number(found.c_str() + digits)) {
      at_ = begin;
      wrong("a value (objects in objects and lists in lists have no place here)");
    }
    if (found.find_first_not_of("0123456789", digits) == std::string::npos &&
        found.size() > digits) {
      errno = 0;
      result->integer = std::strtoll(found.c_str(), nullptr, 10);
      if (errno == 0) result->kind = Value::kInteger;
      return;
    }
  }

  // Whether this is what JSON calls a number, its sign apart.
  static bool number(const char* at) {
    auto digits = [&at] {
      const char* begin = at;
      while (*at >= '0' && *at <= '9') ++at;
      return at != begin;
    };
    if (*at == '0' && at[1] >= '0' && at[1] <= '9') return false;
    if (!digits()) return false;
    if (*at == '.' && (++at, !digits())) return false;
    if (*at != 'e' && *at != 'E') return *at == '\0';
    ++at;
    if (*at == '+' || *at == '-') ++at;
    return digits() && *at == '\0';
  }

  // Copies one character of UTF-8; anything else is refused.
  void character(std::string* out) {
    auto byte = [this](size_t at) {
      return at < text_.size() ? static_cast<unsigned char>(text_[at]) : 0u;
    };
    unsigned lead = byte(at_);
    size_t more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    unsigned code = more == 0 ? lead : lead & (0x3Fu >> more);
    bool good = lead < 0x80 || (lead >= 0xC2 && lead <= 0xF4);
    for (size_t at = 1; good && at <= more; ++at) {
      good = (byte(at_ + at) & 0xC0) == 0x80;
      code = code << 6 | (byte(at_ + at) & 0x3F);
    }
    static const unsigned kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (!good || code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      wrong("UTF-8");
    out->append(text_, at_, more + 1);
    at_ += more + 1;
  }

  std::string string() {
    if (at_ >= text_.size() || text_[at_] != '"') wrong("a string");
    ++at_;
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) wrong("no control character");
      if (text_[at_] != '\\') {
        character(&out);
      } else if (++at_ < text_.size()) {
        escape(text_[at_++], &out);
      }
    }
    if (at_ >= text_.size()) wrong("'\"'");
    ++at_;
    return out;
  }

  void escape(char c, std::string* out) {
    static const std::string kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    size_t which = kFrom.find(c);
    if (which != std::string::npos) {
      *out += kTo[which];
    } else if (c == 'u') {
      uint32_t code = hex4();
      if (code >= 0xD800 && code < 0xDC00 && text_.compare(at_, 2, "\\u") == 0) {
        at_ += 2;
        uint32_t low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) wrong("the second half of a character");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      if (code >= 0xD800 && code < 0xE000) wrong("a whole character");
      utf8(code, out);
    } else {
      wrong("an escape");
    }
  }

  uint32_t hex4() {
    std::string digits = text_.substr(at_, 4);
    if (digits.size() < 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      wrong("four hexadecimal digits");
    at_ += 4;
    return static_cast<uint32_t>(std::strtoul(digits.c_str(), nullptr, 16));
  }

  static void utf8(uint32_t code, std::string* out) {
    if (code < 0x80) {
      *out += static_cast<char>(code);
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const int kLead[] = {0, 0xC0, 0xE0, 0xF0};
    *out += static_cast<char>(kLead[more] | (code >> (6 * more)));
    while (more-- > 0) *out += static_cast<char>(0x80 | ((code >> (6 * more)) & 0x3F));
  }

  std::string text_;
  size_t at_ = 0;
};

}  // namespace wattwire
