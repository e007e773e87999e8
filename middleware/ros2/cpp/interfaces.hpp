// The interface types of the two encodings, and conversions between payloads and fields.

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
