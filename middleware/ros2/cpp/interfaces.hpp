// The interface types of the encodings, and conversions between payloads and fields.

#pragma once

#include <std_msgs/msg/string.hpp>
#include <string>
#include <vector>
#include <wattwire_interfaces/action/perform_bytes.hpp>
#include <wattwire_interfaces/action/perform_text.hpp>
#include <wattwire_interfaces/msg/bytes.hpp>
#include <wattwire_interfaces/srv/exchange_bytes.hpp>
#include <wattwire_interfaces/srv/exchange_text.hpp>

#include "wattwire/kit.hpp"

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

// Returns a message without data; only the data differ between the messages of a run.
template <typename Message>
Message new_message(const wattwire::Kit& /*kit*/) {
  return Message();
}

#ifdef WATTWIRE_ROS_POINT_CLOUDS
struct PointCloudTypes {
  using Topic = sensor_msgs::msg::PointCloud2;
};

template <>
inline sensor_msgs::msg::PointCloud2 new_message(const wattwire::Kit& kit) {
  sensor_msgs::msg::PointCloud2 cloud;
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
  return cloud;
}
#endif

// Calls `role(types)` with the types of the encoding of a topic or a pipeline.
template <typename Role>
void with_types(const wattwire::Kit& kit, Role role) {
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

// Fills a field, and reuses its memory for each message.
template <typename Field>
void assign(Field& field, wattwire::Bytes bytes) {
  field.assign(bytes.data, bytes.data + bytes.size);
}
