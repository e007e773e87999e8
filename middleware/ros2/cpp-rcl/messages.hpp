// Message memory of the encodings, with a common interface to a field of bytes or characters.

#pragma once

#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <std_msgs/msg/string.h>
#include <wattwire_interfaces/msg/array16k.h>
#include <wattwire_interfaces/msg/array1k.h>
#include <wattwire_interfaces/msg/array1m.h>
#include <wattwire_interfaces/msg/array256k.h>
#include <wattwire_interfaces/msg/array2m.h>
#include <wattwire_interfaces/msg/array4k.h>
#include <wattwire_interfaces/msg/array64k.h>
#include <wattwire_interfaces/msg/bytes.h>
#include <wattwire_interfaces/srv/exchange_bytes.h>
#include <wattwire_interfaces/srv/exchange_text.h>

#include <cstring>
#include <memory>

#include "wattwire/kit.hpp"
#include "wattwire_ros2/arrays.hpp"

// Small ROS installations have no sensor_msgs.
#if __has_include(<sensor_msgs/msg/point_cloud2.h>)
#include <sensor_msgs/msg/point_cloud2.h>
#include <sensor_msgs/msg/point_field.h>
#define WATTWIRE_ROS_POINT_CLOUDS 1
#endif

inline wattwire::Bytes view(const rosidl_runtime_c__uint8__Sequence& field) {
  return {field.data, field.size};
}

inline wattwire::Bytes view(const rosidl_runtime_c__String& field) {
  return {reinterpret_cast<const uint8_t*>(field.data), field.size};
}

// Fills a field, and reuses its memory for each message.
inline void assign(rosidl_runtime_c__uint8__Sequence& field, wattwire::Bytes bytes) {
  if (field.capacity < bytes.size) {
    rosidl_runtime_c__uint8__Sequence__fini(&field);
    if (!rosidl_runtime_c__uint8__Sequence__init(&field, bytes.size)) throw std::bad_alloc();
  }
  field.size = bytes.size;
  if (bytes.size != 0) std::memcpy(field.data, bytes.data, bytes.size);
}

template <size_t kSize>
wattwire::Bytes view(const uint8_t (&field)[kSize]) {
  return {field, kSize};
}

// The kit's buffer has the length of the array (`check_array`).
template <size_t kSize>
void assign(uint8_t (&field)[kSize], wattwire::Bytes bytes) {
  std::memcpy(field, bytes.data, kSize);
}

inline void assign(rosidl_runtime_c__String& field, wattwire::Bytes bytes) {
  const char* text = bytes.size == 0 ? "" : reinterpret_cast<const char*>(bytes.data);
  if (!rosidl_runtime_c__String__assignn(&field, text, bytes.size)) throw std::bad_alloc();
}

struct BytesTopic {
  using Message = wattwire_interfaces__msg__Bytes;
  static const rosidl_message_type_support_t* support() {
    return ROSIDL_GET_MSG_TYPE_SUPPORT(wattwire_interfaces, msg, Bytes);
  }
  static bool init(Message* message) { return wattwire_interfaces__msg__Bytes__init(message); }
  static void fini(Message* message) { wattwire_interfaces__msg__Bytes__fini(message); }
};

struct TextTopic {
  using Message = std_msgs__msg__String;
  static const rosidl_message_type_support_t* support() {
    return ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  }
  static bool init(Message* message) { return std_msgs__msg__String__init(message); }
  static void fini(Message* message) { std_msgs__msg__String__fini(message); }
};

#ifdef WATTWIRE_ROS_POINT_CLOUDS
struct PointCloudTopic {
  using Message = sensor_msgs__msg__PointCloud2;
  static const rosidl_message_type_support_t* support() {
    return ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, PointCloud2);
  }
  static bool init(Message* message) { return sensor_msgs__msg__PointCloud2__init(message); }
  static void fini(Message* message) { sensor_msgs__msg__PointCloud2__fini(message); }
};
#endif

// A type whose message has a fixed array: Array1k … Array2m.
#define WATTWIRE_ARRAY_TOPIC(name)                                                            \
  struct name##Topic {                                                                        \
    using Message = wattwire_interfaces__msg__##name;                                         \
    static const rosidl_message_type_support_t* support() {                                   \
      return ROSIDL_GET_MSG_TYPE_SUPPORT(wattwire_interfaces, msg, name);                     \
    }                                                                                         \
    static bool init(Message* message) {                                                      \
      return wattwire_interfaces__msg__##name##__init(message);                               \
    }                                                                                         \
    static void fini(Message* message) { wattwire_interfaces__msg__##name##__fini(message); } \
  }
WATTWIRE_ARRAY_TOPIC(Array1k);
WATTWIRE_ARRAY_TOPIC(Array4k);
WATTWIRE_ARRAY_TOPIC(Array16k);
WATTWIRE_ARRAY_TOPIC(Array64k);
WATTWIRE_ARRAY_TOPIC(Array256k);
WATTWIRE_ARRAY_TOPIC(Array1m);
WATTWIRE_ARRAY_TOPIC(Array2m);
#undef WATTWIRE_ARRAY_TOPIC

struct BytesRequest {
  using Message = wattwire_interfaces__srv__ExchangeBytes_Request;
  static bool init(Message* m) { return wattwire_interfaces__srv__ExchangeBytes_Request__init(m); }
  static void fini(Message* m) { wattwire_interfaces__srv__ExchangeBytes_Request__fini(m); }
};

struct BytesReply {
  using Message = wattwire_interfaces__srv__ExchangeBytes_Response;
  static bool init(Message* m) { return wattwire_interfaces__srv__ExchangeBytes_Response__init(m); }
  static void fini(Message* m) { wattwire_interfaces__srv__ExchangeBytes_Response__fini(m); }
};

struct BytesService {
  using Request = BytesRequest;
  using Reply = BytesReply;
  static const rosidl_service_type_support_t* support() {
    return ROSIDL_GET_SRV_TYPE_SUPPORT(wattwire_interfaces, srv, ExchangeBytes);
  }
};

struct TextRequest {
  using Message = wattwire_interfaces__srv__ExchangeText_Request;
  static bool init(Message* m) { return wattwire_interfaces__srv__ExchangeText_Request__init(m); }
  static void fini(Message* m) { wattwire_interfaces__srv__ExchangeText_Request__fini(m); }
};

struct TextReply {
  using Message = wattwire_interfaces__srv__ExchangeText_Response;
  static bool init(Message* m) { return wattwire_interfaces__srv__ExchangeText_Response__init(m); }
  static void fini(Message* m) { wattwire_interfaces__srv__ExchangeText_Response__fini(m); }
};

struct TextService {
  using Request = TextRequest;
  using Reply = TextReply;
  static const rosidl_service_type_support_t* support() {
    return ROSIDL_GET_SRV_TYPE_SUPPORT(wattwire_interfaces, srv, ExchangeText);
  }
};

// Owns a message of a type above: initialises and finalises it. A message with a fixed array is too
// long for the stack.
template <typename Type>
struct Owned {
  const std::unique_ptr<typename Type::Message> memory = std::make_unique<typename Type::Message>();
  typename Type::Message& message = *memory;
  Owned() {
    if (!Type::init(&message)) throw std::bad_alloc();
  }
  ~Owned() { Type::fini(&message); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

// Fills the fields that are equal in all messages of a run; only the data differ.
template <typename Message>
void prepare(const wattwire::Kit& /*kit*/, Message& /*message*/) {}

#ifdef WATTWIRE_ROS_POINT_CLOUDS
inline void assign(rosidl_runtime_c__String& field, const char* text) {
  if (!rosidl_runtime_c__String__assign(&field, text)) throw std::bad_alloc();
}

inline void prepare(const wattwire::Kit& kit, sensor_msgs__msg__PointCloud2& cloud) {
  cloud.header.stamp = {};  // rosidl does not initialise numbers
  assign(cloud.header.frame_id, "lidar");
  cloud.height = 1;
  cloud.width = static_cast<uint32_t>(kit.integer("payload.bytes") / wattwire::kPointBytes);
  const size_t count = wattwire::kPointFields.size();
  if (!sensor_msgs__msg__PointField__Sequence__init(&cloud.fields, count)) throw std::bad_alloc();
  for (size_t at = 0; at < count; ++at) {
    sensor_msgs__msg__PointField& field = cloud.fields.data[at];
    assign(field.name, wattwire::kPointFields[at].name);
    field.offset = wattwire::kPointFields[at].offset;
    field.datatype = sensor_msgs__msg__PointField__FLOAT32;
    field.count = 1;
  }
  cloud.is_bigendian = false;
  cloud.point_step = wattwire::kPointBytes;
  cloud.row_step = wattwire::kPointBytes * cloud.width;
  cloud.is_dense = false;
}
#endif

template <typename Role>
void with_array_type(const wattwire::Kit& kit, Role role) {
  check_array(kit);
  switch (kit.integer("payload.bytes")) {
    case 1024:
      return role(Array1kTopic());
    case 4096:
      return role(Array4kTopic());
    case 16384:
      return role(Array16kTopic());
    case 65536:
      return role(Array64kTopic());
    case 262144:
      return role(Array256kTopic());
    case 1048576:
      return role(Array1mTopic());
    case 2097152:
      return role(Array2mTopic());
  }
}

// Calls `role(type)` with the type of the encoding of a topic or a pipeline.
template <typename Role>
void with_type(const wattwire::Kit& kit, Role role) {
  if (has_fixed_array(kit)) return with_array_type(kit, role);
#ifdef WATTWIRE_ROS_POINT_CLOUDS
  if (kit.encoding() == "pointcloud") return role(PointCloudTopic());
#endif
  kit.text() ? role(TextTopic()) : role(BytesTopic());
}
