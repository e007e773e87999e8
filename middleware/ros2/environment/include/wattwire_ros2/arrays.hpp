// The messages with a fixed array (settings.array = fixed), by the length of the array in bytes.

#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "wattwire/kit.hpp"

inline constexpr std::array<int64_t, 7> kArraySizes = {1024,   4096,    16384,  65536,
                                                       262144, 1048576, 2097152};

inline bool has_fixed_array(const wattwire::Kit& kit) {
  return kit.string("settings.array") == "fixed";
}

// Throws Unsupported if settings.array is fixed and no message type fits the run.
inline void check_array(const wattwire::Kit& kit) {
  if (!has_fixed_array(kit)) return;
  auto refuse = [](const std::string& found, const std::string& allowed) {
    throw wattwire::Unsupported(found + " with settings.array = fixed; allowed: " + allowed +
                                "; choose one, or settings.array = sequence");
  };
  const std::string& pattern = kit.string("pattern");
  if (pattern != "topic" && pattern != "pipeline") refuse("pattern " + pattern, "topic, pipeline");
  if (kit.encoding() != "bytes") refuse("payload.encoding " + kit.encoding(), "bytes");
  if (!kit.string("payload.literal").empty()) refuse("payload.literal", "an empty literal");
  std::string allowed;
  for (const int64_t size : kArraySizes) {
    if (size == kit.integer("payload.bytes")) return;
    allowed += (allowed.empty() ? "" : ", ") + std::to_string(size);
  }
  refuse("payload.bytes " + std::to_string(kit.integer("payload.bytes")), allowed);
}
