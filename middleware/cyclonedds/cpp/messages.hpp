// A common interface to idlc's types for the encodings. `assign` refers a message to the
// kit's data, which is valid until the next message. `view` returns the payload of a received
// message.

#pragma once

#include <array>
#include <string>
#include <vector>

#include "wattwire.h"
#include "wattwire/kit.hpp"

using wattwire::Bytes;

struct BytesType {
  using Message = wattwire_Bytes;
  using Call = wattwire_BytesCall;
  static const dds_topic_descriptor_t* message() { return &wattwire_Bytes_desc; }
  static const dds_topic_descriptor_t* call() { return &wattwire_BytesCall_desc; }

  void assign(Message& message, Bytes data) {
    const uint32_t size = static_cast<uint32_t>(data.size);
    message.data = {size, size, const_cast<uint8_t*>(data.data), false};
  }
  Bytes view(const Message& message) { return {message.data._buffer, message.data._length}; }
};

struct TextType {
  using Message = wattwire_Text;
  using Call = wattwire_TextCall;
  static const dds_topic_descriptor_t* message() { return &wattwire_Text_desc; }
  static const dds_topic_descriptor_t* call() { return &wattwire_TextCall_desc; }

  void assign(Message& message, Bytes data) {
    text_.assign(data.view());  // IDL strings are zero-terminated
    message.data = text_.data();
  }
  Bytes view(const Message& message) { return {message.data, std::strlen(message.data)}; }

 private:
  std::string text_;
};

struct RecordType {
  using Message = wattwire_Record;
  using Call = wattwire_RecordCall;
  static const dds_topic_descriptor_t* message() { return &wattwire_Record_desc; }
  static const dds_topic_descriptor_t* call() { return &wattwire_RecordCall_desc; }

  void assign(Message& message, Bytes data) {
    const wattwire::Record& from = *data.record;
    const auto& p = from.position;
    const auto& o = from.orientation;
    samples_.clear();
    for (const auto& s : from.samples) samples_.push_back({s.id, s.state, s.value});
    const uint32_t count = static_cast<uint32_t>(samples_.size());
    message.header = {from.seq, from.send_ns};
    message.name = const_cast<char*>(from.name.c_str());
    message.pose = {{p[0], p[1], p[2]}, {o[0], o[1], o[2], o[3]}};
    message.samples = {count, count, samples_.data(), false};
    message.trailer = {from.trailer_seq};
  }

  Bytes view(const Message& message) {
    const auto& p = message.pose.position;
    const auto& o = message.pose.orientation;
    arrived_.seq = message.header.seq;
    arrived_.send_ns = message.header.send_ns;
    arrived_.name = message.name;
    arrived_.position = {p.x, p.y, p.z};
    arrived_.orientation = {o.x, o.y, o.z, o.w};
    arrived_.samples.clear();
    for (uint32_t at = 0; at < message.samples._length; ++at) {
      const wattwire_Sample& s = message.samples._buffer[at];
      arrived_.samples.push_back({s.id, s.state, s.value});
    }
    arrived_.trailer_seq = message.trailer.seq;
    return arrived_;
  }

 private:
  std::vector<wattwire_Sample> samples_;
  wattwire::Record arrived_;
};

// Only topics and pipelines have point clouds (C-39), so this type has no call.
class PointCloudType {
 public:
  using Message = sensor_msgs_msg_PointCloud2;
  static const dds_topic_descriptor_t* message() { return &sensor_msgs_msg_PointCloud2_desc; }

  PointCloudType() {
    for (size_t at = 0; at < fields_.size(); ++at) {
      const auto& [name, offset] = wattwire::kPointFields[at];
      fields_[at] = {const_cast<char*>(name), offset, kFloat32, 1};
    }
  }

  void assign(Message& message, Bytes data) {
    const uint32_t size = static_cast<uint32_t>(data.size);
    const uint32_t count = static_cast<uint32_t>(fields_.size());
    message.header = {{0, 0}, const_cast<char*>("lidar")};
    message.height = 1;
    message.width = size / wattwire::kPointBytes;
    message.fields = {count, count, fields_.data(), false};
    message.is_bigendian = false;
    message.point_step = wattwire::kPointBytes;
    message.row_step = size;
    message.data = {size, size, const_cast<uint8_t*>(data.data), false};
    message.is_dense = false;
  }
  Bytes view(const Message& message) { return {message.data._buffer, message.data._length}; }

 private:
  static constexpr uint8_t kFloat32 = 7;  // PointField::FLOAT32
  std::array<sensor_msgs_msg_PointField, wattwire::kPointFields.size()> fields_;
};

// Calls `role(type)` with the encoding's type. Topics and pipelines call `with_topic_type`.
template <class Role>
void with_type(const wattwire::Kit& kit, Role role) {
  const std::string& encoding = kit.string("payload.encoding");
  if (encoding == "bytes") return role(BytesType());
  if (encoding == "text") return role(TextType());
  role(RecordType());
}

template <class Role>
void with_topic_type(const wattwire::Kit& kit, Role role) {
  if (kit.encoding() == "pointcloud") return role(PointCloudType());
  with_type(kit, role);
}
