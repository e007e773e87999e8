// Support of message types that are known at run time only: libraries of their packages.

#pragma once

#include <dlfcn.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_typesupport_introspection_c/field_types.h>
#include <rosidl_typesupport_introspection_c/message_introspection.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "records.hpp"

// Where the first bytes of a serialized message have a time.
enum class StampPlace { kNone, kFirst };

struct MessageType {
  const rosidl_message_type_support_t* support = nullptr;
  StampPlace stamp = StampPlace::kNone;
};

// Returns the function of a library of the type's package that returns a type support. Libraries
// stay loaded, because the middleware keeps pointers into them.
inline const rosidl_message_type_support_t* type_support(const std::string& type,
                                                         const std::string& kind) {
  const size_t first = type.find('/');
  const size_t last = type.rfind('/');
  if (first == std::string::npos || first == last) {
    throw std::runtime_error("found the type \"" + type + "\"; allowed: PACKAGE/msg/NAME");
  }
  const std::string package = type.substr(0, first);
  const std::string library = "lib" + package + "__" + kind + ".so";
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  const std::string symbol = kind + "__get_message_type_support_handle__" + package + "__" +
                             type.substr(first + 1, last - first - 1) + "__" +
                             type.substr(last + 1);
  void* address = dlsym(handle, symbol.c_str());
  if (address == nullptr) throw std::runtime_error(dlerror());
  using Getter = const rosidl_message_type_support_t* (*)();
  return reinterpret_cast<Getter>(address)();
}

using Members = rosidl_typesupport_introspection_c__MessageMembers;

inline bool is_message(const Members* members, const char* package_and_kind, const char* name) {
  return std::strcmp(members->message_namespace_, package_and_kind) == 0 &&
         std::strcmp(members->message_name_, name) == 0;
}

// Returns whether messages of a type begin with a std_msgs/Header, whose first field is the stamp.
inline StampPlace stamp_place(const rosidl_message_type_support_t* introspection) {
  const auto* members = static_cast<const Members*>(introspection->data);
  if (is_message(members, "std_msgs__msg", "Header")) return StampPlace::kFirst;
  if (members->member_count_ == 0) return StampPlace::kNone;
  const rosidl_typesupport_introspection_c__MessageMember& field = members->members_[0];
  if (field.type_id_ != rosidl_typesupport_introspection_c__ROS_TYPE_MESSAGE || field.is_array_) {
    return StampPlace::kNone;
  }
  const auto* inner = static_cast<const Members*>(field.members_->data);
  return is_message(inner, "std_msgs__msg", "Header") ? StampPlace::kFirst : StampPlace::kNone;
}

// Loads a type. Throws std::runtime_error if its package is not installed. A package without
// introspection has no stamps.
inline MessageType load_type(const std::string& type) {
  MessageType loaded;
  loaded.support = type_support(type, "rosidl_typesupport_c");
  try {
    loaded.stamp = stamp_place(type_support(type, "rosidl_typesupport_introspection_c"));
  } catch (const std::runtime_error&) {
    loaded.stamp = StampPlace::kNone;
  }
  return loaded;
}

// Returns the stamp (ns) at the begin of a message in plain CDR, or kNoStamp. The four bytes of the
// encapsulation give the encoding (0: big endian, 1: little endian). Seconds (4 bytes) and
// nanoseconds (4 bytes) follow.
inline int64_t stamp_ns(StampPlace place, const uint8_t* data, size_t bytes) {
  if (place == StampPlace::kNone || bytes < 12 || data[0] != 0 || data[1] > 1) return kNoStamp;
  uint32_t words[2];
  std::memcpy(words, data + 4, sizeof words);
  const bool is_little_endian_host = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  if ((data[1] == 1) != is_little_endian_host) {
    for (uint32_t& word : words) word = __builtin_bswap32(word);
  }
  return int64_t{static_cast<int32_t>(words[0])} * 1'000'000'000 + words[1];
}
