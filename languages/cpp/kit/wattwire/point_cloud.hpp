// Point clouds: the layout of a point, and the specs that no point cloud can meet (C-39).
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "spec.hpp"

namespace wattwire {

inline constexpr uint32_t kPointBytes = 16;

struct PointField {
  const char* name;
  uint32_t offset;  // in bytes; each field is a float of 32 bits
};
inline constexpr std::array<PointField, 4> kPointFields = {
    {{"x", 0}, {"y", 4}, {"z", 8}, {"intensity", 12}}};

inline void check_point_cloud(const Spec& spec) {
  const std::string with = " with encoding.pointcloud; allowed: ";
  const std::string& pattern = spec.string("pattern");
  if (pattern != "topic" && pattern != "pipeline")
    throw Unsupported("pattern " + pattern + with + "topic, pipeline");
  if (!spec.string("payload.literal").empty())
    throw Unsupported("payload.literal" + with + "an empty literal");
  const int64_t size = spec.integer("payload.bytes");
  if (size >= kPointBytes && size % kPointBytes == 0) return;
  const std::string point = std::to_string(kPointBytes);
  throw Unsupported("payload.bytes " + std::to_string(size) + with + "multiples of " + point +
                    ", from " + point +
                    ", the bytes of one point; choose one, or use another encoding");
}

}  // namespace wattwire
