// The interface types of the encodings, and conversions between payloads and fields.

#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <std_msgs/msg/string.hpp>
#include <string>
#include <vector>
#include <wattwire_interfaces/action/perform_bytes.hpp>
#include <wattwire_interfaces/action/perform_text.hpp>
#include <wattwire_interfaces/msg/array16k.hpp>
#include <wattwire_interfaces/msg/array1k.hpp>
#include <wattwire_interfaces/msg/array1m.hpp>
#include <wattwire_interfaces/msg/array256k.hpp>
#include <wattwire_interfaces/msg/array2m.hpp>
#include <wattwire_interfaces/msg/array4k.hpp>
#include <wattwire_interfaces/msg/array64k.hpp>
#include <wattwire_interfaces/msg/bytes.hpp>
#include <wattwire_interfaces/srv/exchange_bytes.hpp>
#include <wattwire_interfaces/srv/exchange_text.hpp>

#include "wattwire/kit.hpp"
#include "wattwire_ros2/arrays.hpp"

// Small ROS installations have no sensor_msgs.
#if __has_include(<sensor_msgs/msg/point_cloud2.hpp>)
#include <sensor_msgs/msg/point_cloud2.hpp>
#define WATTWIRE_ROS_POINT_CLOUDS 1
#endif

struct BytesTypes {
  using Topic = wattwire_interfaces::msg::Bytes;
  using Service = wattwire_interfaces::srv::ExchangeBytes;
  using Action = wattwire_interfaces::action::PerformBytes;
};

struct TextTypes {
  using Topic = std_msgs::msg::String;
  using Service = wattwire_interfaces::srv::ExchangeText;
  using Action = wattwire_interfaces::action::PerformText;
};

// A message with a fixed array: Array1k … Array2m.
template <typename Message>
struct ArrayTypes {
  using Topic = Message;
};

// Returns a message without data; only the data differ between the messages of a run.
template <typename Message>
std::unique_ptr<Message> new_message(const wattwire::Kit& /*kit*/) {
  return std::make_unique<Message>();  // a message with a fixed array is too long for the stack
}

#ifdef WATTWIRE_ROS_POINT_CLOUDS
struct PointCloudTypes {
  using Topic = sensor_msgs::msg::PointCloud2;
};

template <>
inline std::unique_ptr<sensor_msgs::msg::PointCloud2> new_message(const wattwire::Kit& kit) {
  auto message = std::make_unique<sensor_msgs::msg::PointCloud2>();
  sensor_msgs::msg::PointCloud2& cloud = *message;
  cloud.header.frame_id = "lidar";
  cloud.height = 1;
  cloud.width = static_cast<uint32_t>(kit.integer("payload.bytes") / wattwire::kPointBytes);
  for (const auto& [name, offset] : wattwire::kPointFields) {
    sensor_msgs::msg::PointField field;
    field.name = name;
    field.offset = offset;
    field.datatype = sensor_msgs::msg::PointField::FLOAT32;
    field.count = 1;
    cloud.fields.push_back(field);
  }
  cloud.is_bigendian = false;
  cloud.point_step = wattwire::kPointBytes;
  cloud.row_step = wattwire::kPointBytes * cloud.width;
  cloud.is_dense = false;
  return message;
}
#endif

template <typename Role>
void with_array_types(const wattwire::Kit& kit, Role role) {
  using namespace wattwire_interfaces::msg;
  check_array(kit);
  switch (kit.integer("payload.bytes")) {
    case 1024:
      return role(ArrayTypes<Array1k>());
    case 4096:
      return role(ArrayTypes<Array4k>());
    case 16384:
      return role(ArrayTypes<Array16k>());
    case 65536:
      return role(ArrayTypes<Array64k>());
    case 262144:
      return role(ArrayTypes<Array256k>());
    case 1048576:
      return role(ArrayTypes<Array1m>());
    case 2097152:
      return role(ArrayTypes<Array2m>());
  }
}

// Calls `role(types)` with the types of the encoding of a topic or a pipeline.
template <typename Role>
void with_types(const wattwire::Kit& kit, Role role) {
  if (has_fixed_array(kit)) return with_array_types(kit, role);
#ifdef WATTWIRE_ROS_POINT_CLOUDS
  if (kit.encoding() == "pointcloud") return role(PointCloudTypes());
#endif
  kit.text() ? role(TextTypes()) : role(BytesTypes());
}

// A field is a vector of bytes or a string.
template <typename Field>
wattwire::Bytes view(const Field& field) {
  return {reinterpret_cast<const uint8_t*>(field.data()), field.size()};
}

// The kit's buffer has the length of the array (`check_array`).
template <size_t kSize>
void assign(std::array<uint8_t, kSize>& field, wattwire::Bytes bytes) {
  std::memcpy(field.data(), bytes.data, kSize);
}

// Fills a field, and reuses its memory for each message.
template <typename Field>
void assign(Field& field, wattwire::Bytes bytes) {
  field.assign(bytes.data, bytes.data + bytes.size);
}
