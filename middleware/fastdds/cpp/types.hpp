// The types of the topics, without a code generator: a sequence of bytes or a string in plain CDR
// (XCDR1), alone or after the client and the number of a call.

#pragma once

#include <cstring>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <vector>

#include "wattwire/kit.hpp"

using eprosima::fastdds::dds::DataRepresentationId_t;
using eprosima::fastdds::rtps::InstanceHandle_t;
using eprosima::fastdds::rtps::SerializedPayload_t;
using wattwire::Bytes;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are written as little-endian");

// A message to send refers to the memory of `body`. An arrival refers to its own memory, which
// grows to the largest message and is reused.
struct Message {
  uint32_t client = 0;  // a call has the caller's node and a number
  uint64_t number = 0;
  Bytes body;
  std::vector<uint8_t> memory;
};

enum class Body { kBytes, kText };
enum class Frame { kMessage, kCall };

class MessageType : public eprosima::fastdds::dds::TopicDataType {
 public:
  MessageType(Body body, Frame frame)
      : end_bytes_(body == Body::kText ? 1 : 0), call_(frame == Frame::kCall) {
    set_name(std::string("wattwire::") + (body == Body::kText ? "Text" : "Bytes") +
             (call_ ? "Call" : ""));
    max_serialized_type_size = static_cast<uint32_t>(kHeaderBytes + fixed_bytes());  // unbounded
  }

  bool serialize(const void* const data, SerializedPayload_t& payload,
                 DataRepresentationId_t /*representation*/) override {
    const Message& message = *static_cast<const Message*>(data);
    const size_t bytes = kHeaderBytes + fixed_bytes() + message.body.size + end_bytes_;
    if (payload.max_size < bytes) return false;
    uint8_t* at = payload.data;
    payload.encapsulation = CDR_LE;
    at = put(at, kHeader);
    if (call_) {
      at = put(at, uint64_t{message.client});  // with the padding before the number
      at = put(at, message.number);
    }
    at = put(at, static_cast<uint32_t>(message.body.size + end_bytes_));
    if (message.body.size != 0) std::memcpy(at, message.body.data, message.body.size);
    if (end_bytes_ != 0) at[message.body.size] = 0;  // a string in CDR includes its zero
    payload.length = static_cast<uint32_t>(bytes);
    return true;
  }

  bool deserialize(SerializedPayload_t& payload, void* data) override {
    Message& message = *static_cast<Message*>(data);
    const uint8_t* at = payload.data;
    if (payload.length < kHeaderBytes + fixed_bytes() || at[1] != kHeader[1]) return false;
    at += kHeaderBytes;
    if (call_) {
      uint64_t padded_client;
      at = get(at, padded_client);
      at = get(at, message.number);
      message.client = static_cast<uint32_t>(padded_client);
    }
    uint32_t size;
    at = get(at, size);
    if (size < end_bytes_ || size > payload.length - kHeaderBytes - fixed_bytes()) return false;
    message.memory.assign(at, at + size - end_bytes_);
    message.body = Bytes(message.memory.data(), message.memory.size());
    return true;
  }

  uint32_t calculate_serialized_size(const void* const data,
                                     DataRepresentationId_t /*representation*/) override {
    const size_t body_bytes = static_cast<const Message*>(data)->body.size;
    return static_cast<uint32_t>(kHeaderBytes + fixed_bytes() + body_bytes + end_bytes_);
  }

  void* create_data() override { return new Message; }
  void delete_data(void* data) override { delete static_cast<Message*>(data); }
  bool compute_key(SerializedPayload_t&, InstanceHandle_t&, bool) override { return false; }
  bool compute_key(const void* const, InstanceHandle_t&, bool) override { return false; }

 private:
  static constexpr size_t kHeaderBytes = SerializedPayload_t::representation_header_size;
  static constexpr uint8_t kHeader[kHeaderBytes] = {0, CDR_LE, 0, 0};

  // Returns the number of bytes between the header and the body.
  size_t fixed_bytes() const { return (call_ ? 2 * sizeof(uint64_t) : 0) + sizeof(uint32_t); }

  template <class Value>
  static uint8_t* put(uint8_t* at, const Value& value) {
    std::memcpy(at, &value, sizeof value);
    return at + sizeof value;
  }
  template <class Value>
  static const uint8_t* get(const uint8_t* at, Value& value) {
    std::memcpy(&value, at, sizeof value);
    return at + sizeof value;
  }

  const size_t end_bytes_;
  const bool call_;
};
