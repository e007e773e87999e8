// Writes JSON for the lines to the harness (C-05). json_reader.hpp reads JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
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

// The JSON text of a scalar.
struct Scalar {
  std::string json = "null";
  Scalar() = default;
  Scalar(const char* text) : json(quoted(text)) {}
  Scalar(const std::string& text) : json(quoted(text)) {}
  Scalar(bool value) : json(value ? "true" : "false") {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Scalar(T value) : json(std::to_string(value)) {}

  // Returns null if the value equals `unknown`.
  static Scalar known(int64_t value, int64_t unknown) {
    return value == unknown ? Scalar() : Scalar(value);
  }
};

// Builds the text of a JSON object field by field.
class Object {
 public:
  Object& add(const std::string& name, const Scalar& value) { return add_json(name, value.json); }
  Object& add(const std::string& name, const Object& value) { return add_json(name, value.text()); }
  Object& add(const std::string& name, const std::vector<std::string>& strings) {
    std::string list;
    for (const auto& item : strings) list += (list.empty() ? "" : ", ") + quoted(item);
    return add_json(name, "[" + list + "]");
  }
  Object& add(const std::string& name, const std::vector<Object>& objects) {
    std::string list;
    for (const auto& item : objects) list += (list.empty() ? "" : ", ") + item.text();
    return add_json(name, "[" + list + "]");
  }
  // Adds the fields of another object.
  Object& add(const Object& other) {
    if (!other.fields_.empty()) fields_ += (fields_.empty() ? "" : ", ") + other.fields_;
    return *this;
  }
  std::string text() const { return "{" + fields_ + "}"; }

 private:
  Object& add_json(const std::string& name, const std::string& json) {
    if (!fields_.empty()) fields_ += ", ";
    fields_ += quoted(name) + ": " + json;
    return *this;
  }

  std::string fields_;
};

}  // namespace wattwire
