// Reads a flat JSON object, such as a specification, from the events of nlohmann-json's parser.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "json_events.hpp"
#include "json_text.hpp"

namespace wattwire {

struct Value {
  enum Kind { kString, kInteger, kBoolean, kList, kOther };
  Kind kind = kOther;
  std::string text;
  int64_t integer = 0;
  bool boolean = false;
  std::vector<Value> items;
  std::string source;  // the value as JSON, for messages
};

using Values = std::map<std::string, Value, std::less<>>;

// Handles the parser's events. Accepts scalars and lists of scalars, and each key only once.
class FlatReader {
 public:
  // Throws std::invalid_argument if the text is not a flat JSON object.
  static Values read(const std::string& text) {
    FlatReader reader;
    if (!parse_json(text, &reader)) throw std::invalid_argument(reader.reason_);
    return std::move(reader.values_);
  }

  bool null() { return take({}, "null"); }
  bool boolean(bool value) {
    Value out;
    out.kind = Value::kBoolean;
    out.boolean = value;
    return take(std::move(out), value ? "true" : "false");
  }
  bool number_integer(int64_t value) {
    Value out;
    out.kind = Value::kInteger;
    out.integer = value;
    return take(std::move(out), std::to_string(value));
  }
  bool number_unsigned(uint64_t value) {
    if (value <= INT64_MAX) return number_integer(static_cast<int64_t>(value));
    return take({}, std::to_string(value));
  }
  bool number_float(double, const std::string& source) { return take({}, source); }
  bool string(std::string& value) {
    Value out;
    out.kind = Value::kString;
    out.text = value;
    return take(std::move(out), wattwire::quoted(value));
  }
  bool binary(nlohmann::json::binary_t&) { return reject("binary data is not allowed"); }

  bool start_object(size_t) {
    if (depth_++ == 0) return true;
    return reject("nested objects and nested lists are not allowed");
  }
  bool key(std::string& name) {
    if (values_.count(name) != 0) return reject("duplicate key " + wattwire::quoted(name));
    key_ = name;
    return true;
  }
  bool end_object() { return true; }
  bool start_array(size_t) {
    if (depth_++ == 0) return reject("expected an object");
    if (depth_ > 2) return reject("nested objects and nested lists are not allowed");
    list_ = {};
    list_.kind = Value::kList;
    list_.source = "[";
    return true;
  }
  bool end_array() {
    --depth_;
    list_.source += "]";
    values_[key_] = std::move(list_);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    return reject(error.what());
  }

 private:
  bool reject(const std::string& reason) {
    reason_ = reason;
    return false;
  }
  bool take(Value value, std::string source) {
    value.source = std::move(source);
    if (depth_ == 0) return reject("expected an object");
    if (depth_ == 1) {
      values_[key_] = std::move(value);
      return true;
    }
    list_.source += (list_.items.empty() ? "" : ", ") + value.source;
    list_.items.push_back(std::move(value));
    return true;
  }

  Values values_;
  std::string key_, reason_ = "not JSON";
  Value list_;
  int depth_ = 0;
};

}  // namespace wattwire
