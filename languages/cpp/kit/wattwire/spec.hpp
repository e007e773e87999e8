// The node's specification: which keys there are and what they may hold (C-02, C-03).
#pragma once

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "json.hpp"

namespace wattwire {

// The middleware cannot do its part now (exit 4).
struct MiddlewareFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The cell does not have what the specification asks for (exit 3).
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The middleware did not take this message; the run goes on.
struct SendFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A key of the specification is missing, unknown or out of its range (exit 2).
struct BadSpec : std::runtime_error {
  BadSpec(const std::string& bad_key, const std::string& found, const std::string& allowed)
      : std::runtime_error("spec: " + bad_key + ": found " + found + "; allowed: " + allowed),
        key(bad_key) {}
  std::string key;
};

using Names = std::vector<std::string>;

inline std::string join(const Names& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

inline bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Rule {
  enum Kind { kString, kBoolean, kInteger, kOneOf, kRun, kCell, kStrings, kIntegers };
  Kind kind = kString;
  int64_t low = 0, high = 0;
  Names options;

  std::string describe() const {
    std::string range = std::to_string(low) + " to " + std::to_string(high);
    switch (kind) {
      case kString:
        return "a string";
      case kBoolean:
        return "true or false";
      case kInteger:
        return "an integer, " + range;
      case kOneOf:
        return "one of " + join(options);
      case kRun:
        return "a string like [a-z0-9]{4,32}";
      case kCell:
        return "a string like middleware/language";
      case kStrings:
        return "a list of strings";
      case kIntegers:
        return "a list of integers, each " + range;
    }
    return "";
  }

  bool obeyed_by(const Value& value) const {
    const std::string& text = value.text;
    auto is_integer = [this](const Value& item) {
      return item.kind == Value::kInteger && item.integer >= low && item.integer <= high;
    };
    auto is_string = [](const Value& item) { return item.kind == Value::kString; };
    auto all = [&value](auto test) {
      return value.kind == Value::kList &&
             std::all_of(value.items.begin(), value.items.end(), test);
    };
    switch (kind) {
      case kBoolean:
        return value.kind == Value::kBoolean;
      case kInteger:
        return is_integer(value);
      case kStrings:
        return all(is_string);
      case kIntegers:
        return all(is_integer);
      case kOneOf:
        return is_string(value) && has(options, text);
      case kRun:
        return is_string(value) && text.size() >= 4 && text.size() <= 32 &&
               text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
      case kCell: {
        size_t slash = text.find('/');
        return is_string(value) && slash != std::string::npos && slash > 0 &&
               slash + 1 < text.size() && slash == text.rfind('/') &&
               std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
      }
      case kString:
        return is_string(value);
    }
    return false;
  }
};

inline Rule integer(int64_t low, int64_t high) { return {Rule::kInteger, low, high, {}}; }
inline Rule boolean() { return {Rule::kBoolean, 0, 0, {}}; }
inline Rule string() { return {Rule::kString, 0, 0, {}}; }
inline Rule one_of(Names options) { return {Rule::kOneOf, 0, 0, std::move(options)}; }

// In the order of the role codes of the sample file's header (C-24).
inline const Names kRoles = {"publisher",     "subscriber",    "server", "client",
                             "action_server", "action_client", "ping",   "pong"};
inline const std::map<std::string, Names> kPatternRoles = {
    {"topic", {"publisher", "subscriber"}},
    {"service", {"client", "server"}},
    {"action", {"action_client", "action_server"}},
    {"pingpong", {"ping", "pong"}}};
constexpr int64_t kRecordBytesMin = 96;
inline bool is_sender(const std::string& role) {
  return has({"publisher", "client", "action_client", "ping"}, role);
}

inline std::map<std::string, Rule> spec_rules() {
  constexpr int64_t kBig = INT64_MAX, kMsMax = (int64_t{1} << 40) - 1;
  const Rule nodes{Rule::kIntegers, 0, 65534, {}};
  return {{"contract", integer(1, 1)},
          {"run", {Rule::kRun, 0, 0, {}}},
          {"cell", {Rule::kCell, 0, 0, {}}},
          {"pattern", one_of({"topic", "service", "action", "pingpong"})},
          {"role", one_of(kRoles)},
          {"node", integer(0, 65534)},
          {"index", integer(0, kBig)},
          {"peers.nodes", nodes},
          {"peers.count", integer(0, kBig)},
          {"peers.endpoints", {Rule::kStrings, 0, 0, {}}},
          {"loop", one_of({"open", "closed"})},
          {"period_ns", integer(0, kBig)},
          {"phase_ns", integer(0, kBig)},
          {"duration_ns", integer(0, kBig)},
          {"count", integer(0, (int64_t{1} << 48) - 2)},
          {"warmup_ns", integer(0, kBig)},
          {"overrun_ns", integer(0, kBig)},
          {"timeout_ns", integer(1, kBig)},
          {"outstanding_max", integer(1, kBig)},
          {"quiet_ms", integer(0, kMsMax)},
          {"linger_ms", integer(0, kMsMax)},
          {"ready_timeout_ms", integer(1, kMsMax)},
          {"pacing", one_of({"kit", "native"})},
          {"spin_ns", integer(0, kBig)},
          {"payload.bytes", integer(0, 67108864)},
          {"payload.encoding", one_of({"bytes", "text", "record"})},
          {"payload.seed", integer(0, kBig)},
          {"payload.literal", string()},
          {"reply", one_of({"echo", "ack", "literal"})},
          {"reply.literal", string()},
          {"verify", one_of({"header", "full"})},
          {"action.feedback", integer(0, UINT32_MAX)},
          {"record.capacity", integer(0, UINT32_MAX)}};
}

class Spec {
 public:
  Spec(const std::string& path, const std::map<std::string, Rule>& settings)
      : Spec(text_of(path), path, settings) {}

  // `where` is what an error says that the text is of.
  Spec(const std::string& text, const std::string& where,
       const std::map<std::string, Rule>& settings) {
    try {
      values_ = FlatJson(text).read();
    } catch (const std::invalid_argument& error) {
      throw BadSpec("--spec", where, std::string("a flat JSON object (") + error.what() + ")");
    }
    auto rules = spec_rules();
    Names known_settings;
    for (const auto& [name, rule] : settings) {
      rules["settings." + name] = rule;
      known_settings.push_back(name);
    }
    const std::string known = join(known_settings);
    for (const auto& [key, value] : values_)
      if (rules.count(key) == 0)
        throw BadSpec(key, value.source, "nothing: no such key; known settings: " + known);
    for (const auto& [key, rule] : rules) {
      auto found = values_.find(key);
      if (found == values_.end()) throw BadSpec(key, "nothing", rule.describe());
      if (!rule.obeyed_by(found->second)) throw BadSpec(key, found->second.source, rule.describe());
    }
    check_together();
  }

  const Value& at(const std::string& key) const {
    auto found = values_.find(key);
    if (found == values_.end()) throw std::logic_error("no key " + key + " in a specification");
    return found->second;
  }
  const std::string& string(const std::string& key) const { return at(key).text; }
  int64_t integer(const std::string& key) const { return at(key).integer; }
  bool boolean(const std::string& key) const { return at(key).boolean; }
  Names strings(const std::string& key) const {
    Names out;
    for (const auto& item : at(key).items) out.push_back(item.text);
    return out;
  }
  std::vector<int64_t> integers(const std::string& key) const {
    std::vector<int64_t> out;
    for (const auto& item : at(key).items) out.push_back(item.integer);
    return out;
  }
  const std::map<std::string, Value>& values() const { return values_; }

 private:
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) throw BadSpec("--spec", path, "a file that can be read");
    return text;
  }

  // What one key demands of another.
  void check_together() const {
    const auto& roles = kPatternRoles.at(string("pattern"));
    if (!has(roles, string("role")))
      throw BadSpec("role", string("role"), join(roles) + " with pattern " + string("pattern"));
    bool closed = string("loop") == "closed";
    if (closed && string("pattern") == "topic")
      throw BadSpec("loop", "closed", "open with pattern topic");
    for (const auto& key : closed ? Names{"count"} : Names{"period_ns", "duration_ns"})
      if (integer(key) == 0) throw BadSpec(key, "0", "more than 0 with loop " + string("loop"));
    if (string("payload.encoding") == "record") {
      if (integer("payload.bytes") < kRecordBytesMin)
        throw BadSpec("payload.bytes", at("payload.bytes").source,
                      "at least " + std::to_string(kRecordBytesMin) + " with record");
      if (!string("payload.literal").empty())
        throw BadSpec("payload.literal", at("payload.literal").source, "nothing with record");
    }
    bool is_short = integer("payload.bytes") < (string("payload.encoding") == "text" ? 16 : 8);
    if (is_short && string("payload.literal").empty() && !is_sender(string("role")) &&
        integers("peers.nodes").size() != 1)
      throw BadSpec("peers.nodes", at("peers.nodes").source,
                    "one node, because the payload is too short to carry the whole sequence");
  }

  std::map<std::string, Value> values_;
};

}  // namespace wattwire
