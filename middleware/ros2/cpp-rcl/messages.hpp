// Message memory of the two encodings, with a common interface to a field of bytes or characters.

#pragma once

#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <std_msgs/msg/string.h>
#include <wattwire_interfaces/msg/bytes.h>
#include <wattwire_interfaces/srv/exchange_bytes.h>
#include <wattwire_interfaces/srv/exchange_text.h>

#include <cstring>

#include "wattwire/kit.hpp"

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

// Owns a message of a type above: initialises and finalises it.
template <typename Type>
struct Owned {
  typename Type::Message message;
  Owned() {
    if (!Type::init(&message)) throw std::bad_alloc();
  }
  ~Owned() { Type::fini(&message); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};
