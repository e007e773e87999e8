// Reads the node's specification and checks its keys and types (C-02, C-03).
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "constants.hpp"
#include "json_reader.hpp"

namespace wattwire {

// The middleware has failed (exit 4).
struct MiddlewareFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The specification requires a capability that the cell lacks (exit 3).
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The middleware did not send this message; the run continues.
struct SendFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A key of the specification is missing or unknown, or its value has the wrong type (exit 2).
struct BadSpec : std::runtime_error {
  BadSpec(const std::string& bad_key, const std::string& found, const std::string& allowed)
      : std::runtime_error("spec: " + bad_key + ": found " + found + "; allowed: " + allowed),
        key(bad_key) {}
  std::string key;
};

using Names = std::vector<std::string>;

constexpr char kSetting[] = "settings.";
constexpr char kPart[] = "part.";
constexpr int64_t kPartsMax = 10000;  // C-41
constexpr char kAllowed[] = "declared.allowed.";
// The keys with the names of the settings of each type (C-03).
inline constexpr KeyType kSettingNames[] = {{"declared.string_settings", Type::kString},
                                            {"declared.integer_settings", Type::kInteger},
                                            {"declared.boolean_settings", Type::kBoolean}};

inline std::string join(const Names& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

inline bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline const char* describe(Type type) {
  static const char* const kWords[] = {"a string", "true or false", "a 64-bit integer",
                                       "a list of strings", "a list of 64-bit integers"};
  return kWords[static_cast<size_t>(type)];
}

inline bool is(Type type, const Value& value) {
  auto all = [&value](Value::Kind kind) {
    return value.kind == Value::kList &&
           std::all_of(value.items.begin(), value.items.end(),
                       [kind](const Value& item) { return item.kind == kind; });
  };
  switch (type) {
    case Type::kString:
      return value.kind == Value::kString;
    case Type::kBoolean:
      return value.kind == Value::kBoolean;
    case Type::kInteger:
      return value.kind == Value::kInteger;
    case Type::kStrings:
      return all(Value::kString);
    case Type::kIntegers:
      return all(Value::kInteger);
  }
  return false;
}

class Spec {
 public:
  explicit Spec(const std::string& path) : Spec(text_of(path), path) {}

  // Errors refer to the text as `where`.
  Spec(const std::string& text, const std::string& where) {
    try {
      values_ = FlatReader::read(text);
    } catch (const std::invalid_argument& error) {
      throw BadSpec("--spec", where, std::string("a flat JSON object (") + error.what() + ")");
    }
    const auto contract = values_.find("contract");
    const std::string version = contract == values_.end() ? "nothing" : contract->second.source;
    if (const std::string supported = std::to_string(kContract); version != supported)
      throw BadSpec("contract", version, supported);
    std::map<std::string, Type> types, levels;
    for (const KeyType& key : kKeys) types[key.name] = key.type;
    for (const auto& [key, type] : types) check(key, type);
    if (string("pattern") == "pipeline")
      for (const KeyType& key : kPipelineKeys) types[key.name] = key.type;
    for (const KeyType& list : kSettingNames)
      for (const auto& name : strings(list.name)) {
        types[kSetting + name] = list.type;
        levels[kAllowed + name] = list.type;
      }
    if (string("role") == "member") add_part_types(&types);
    for (const auto& [key, value] : values_)
      if (types.count(key) == 0 && levels.count(key) == 0)
        throw BadSpec(key, value.source, "only keys of C-02 and the settings " + join(settings()));
    for (const auto& [key, type] : types) check(key, type);
    for (const auto& [key, type] : levels) check_levels(key, type);
    check_address("host.address", string("host.address"));
    for (const auto& address : strings("peers.addresses"))
      check_address("peers.addresses", address);
  }

  const Value& at(std::string_view key) const {
    auto entry = values_.find(key);
    if (entry == values_.end())
      throw std::logic_error("specifications have no key " + std::string(key));
    return entry->second;
  }
  const std::string& string(std::string_view key) const { return at(key).text; }
  int64_t integer(std::string_view key) const { return at(key).integer; }
  // Throws BadSpec if the value is outside the range that a library accepts.
  int64_t integer(std::string_view key, int64_t low, int64_t high) const {
    const int64_t value = integer(key);
    if (value < low || value > high)
      throw BadSpec(std::string(key), at(key).source,
                    std::to_string(low) + " to " + std::to_string(high));
    return value;
  }
  bool boolean(std::string_view key) const { return at(key).boolean; }
  Names strings(std::string_view key) const {
    Names out;
    for (const auto& item : at(key).items) out.push_back(item.text);
    return out;
  }
  std::vector<int64_t> integers(std::string_view key) const {
    std::vector<int64_t> out;
    for (const auto& item : at(key).items) out.push_back(item.integer);
    return out;
  }

  // Returns the number of parts of a member; 0 for other roles (C-41).
  int64_t parts() const { return values_.count("parts") == 0 ? 0 : integer("parts"); }

  // Returns the spec of a part, as if the part were a node of its own.
  Spec part(int64_t number) const {
    const std::string own = part_prefix(number);
    Spec spec;
    for (const auto& [key, value] : values_)
      if (key != "parts" && key.rfind(kPart, 0) != 0) spec.values_.emplace(key, value);
    for (const auto& [key, value] : values_)
      if (key.rfind(own, 0) == 0) spec.values_[key.substr(own.size())] = value;
    return spec;
  }

  // Returns the names of the declared settings.
  Names settings() const {
    Names out;
    for (const KeyType& list : kSettingNames)
      for (const auto& item : at(list.name).items) out.push_back(item.text);
    return out;
  }
  // Returns the supported values of a setting as JSON; nullopt: all of its type.
  std::optional<Names> allowed(const std::string& setting) const {
    const auto entry = values_.find(kAllowed + setting);
    if (entry == values_.end()) return std::nullopt;
    Names out;
    for (const auto& item : entry->second.items) out.push_back(item.source);
    return out;
  }

 private:
  Spec() = default;

  static std::string part_prefix(int64_t number) { return kPart + std::to_string(number) + "."; }

  // Adds the keys of a member and of its parts. Each part has its own keys and settings.
  void add_part_types(std::map<std::string, Type>* types) const {
    std::map<std::string, Type> of_part;
    for (const KeyType& key : kPartKeys) of_part[key.name] = key.type;
    for (const auto& [key, type] : *types)
      if (key.rfind(kSetting, 0) == 0) of_part[key] = type;
    for (const KeyType& key : kMemberKeys) {
      check(key.name, key.type);
      (*types)[key.name] = key.type;
    }
    const int64_t count = integer("parts", 1, kPartsMax);
    for (int64_t number = 0; number < count; ++number)
      for (const auto& [key, type] : of_part) (*types)[part_prefix(number) + key] = type;
  }

  void check(const std::string& key, Type type) const {
    const auto value = values_.find(key);
    if (value == values_.end()) throw BadSpec(key, "nothing", describe(type));
    if (!is(type, value->second)) throw BadSpec(key, value->second.source, describe(type));
  }

  void check_levels(const std::string& key, Type type) const {
    const auto entry = values_.find(key);
    if (entry == values_.end()) return;
    const Value& value = entry->second;
    if (value.kind != Value::kList ||
        !std::all_of(value.items.begin(), value.items.end(),
                     [type](const Value& item) { return is(type, item); }))
      throw BadSpec(key, value.source, std::string("a list, each item ") + describe(type));
  }

  static void check_address(const char* key, const std::string& address) {
    in_addr parsed;
    if (inet_pton(AF_INET, address.c_str(), &parsed) != 1)
      throw BadSpec(key, address, "an IPv4 address");
  }

  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) throw BadSpec("--spec", path, "a readable file");
    return text;
  }

  Values values_;
};

// Returns the role of this node.
inline const Role& role_of(const Spec& spec) {
  for (const Role& role : kRoles)
    if (spec.string("role") == role.name) return role;
  throw BadSpec("role", spec.string("role"), "a role of the pattern");
}

}  // namespace wattwire
