// Topic and pipeline patterns: ROS topics of the encoding's message type.

#pragma once

#include <chrono>
#include <thread>

#include "interfaces.hpp"
#include "session.hpp"

// Waits until the publisher's messages are sent, because destroying its endpoint would discard
// them. Reliable QoS has acknowledgements. Best effort has none, so the node waits for a fixed
// time.
inline void drain(wattwire::Kit& kit, rclcpp::PublisherBase& publisher) {
  if (kit.string("settings.reliability") == "reliable") {
    publisher.wait_for_all_acked(std::chrono::milliseconds(kit.integer("linger_ms")));
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(kit.integer("quiet_ms")));
  }
}

// Publishes a message. Returns false if it was not sent.
template <typename Message>
bool publish_message(rclcpp::Publisher<Message>& publisher, const Message& message) {
  try {
    publisher.publish(message);
  } catch (const rclcpp::exceptions::RCLError&) {
    return false;
  }
  return true;
}

template <typename Types>
void publish_as(wattwire::Kit& kit) {
  using Message = typename Types::Topic;
  Session session(kit);
  const auto publisher = session.node()->create_publisher<Message>(
      session.name(kit.sending_topic()), session.qos(true));
  auto matched = [&] { return static_cast<int64_t>(publisher->get_subscription_count()); };
  kit.await_peers(matched, [&](int64_t timeout_ns) { session.spin_once(timeout_ns); });
  session.ready(matched(), publisher->get_actual_qos());

  const auto message = new_message<Message>(kit);
  auto send = [&](wattwire::Bytes buffer) {
    assign(message->data, buffer);
    return publish_message(*publisher, *message);
  };
  if (kit.string("pacing") == "native") {
    session.drive([&](wattwire::Slot* slot, wattwire::Bytes buffer) {
      send(buffer) ? kit.complete(slot) : kit.fail(slot);
    });
  } else {
    kit.send_all(send);
  }
  drain(kit, *publisher);
}

template <typename Types>
void subscribe_as(wattwire::Kit& kit) {
  using Message = typename Types::Topic;
  Session session(kit);
  const auto subscription = session.node()->create_subscription<Message>(
      session.name(kit.receiving_topic()), session.qos(true),
      [&](const Message& message) { kit.received(view(message.data)); });
  auto matched = [&] { return static_cast<int64_t>(subscription->get_publisher_count()); };
  kit.await_peers(matched, [&](int64_t timeout_ns) { session.spin_once(timeout_ns); });
  session.ready(matched(), subscription->get_actual_qos());
  session.spin_until_end();
}

template <typename Types>
void relay_as(wattwire::Kit& kit) {
  using Message = typename Types::Topic;
  Session session(kit);
  const auto publisher = session.node()->create_publisher<Message>(
      session.name(kit.sending_topic()), session.qos(true));
  auto pass_on = [&](const Message& arrived) {
    const auto message = kit.relay(view(arrived.data));
    if (!message) return;
    publish_message(*publisher, arrived) ? kit.relayed(*message) : kit.relay_failed(*message);
  };
  const auto subscription = session.node()->create_subscription<Message>(
      session.name(kit.receiving_topic()), session.qos(true), pass_on);
  auto matched = [&] {
    const bool has_successor = publisher->get_subscription_count() > 0;
    return has_successor ? 1 + static_cast<int64_t>(subscription->get_publisher_count()) : 0;
  };
  kit.await_peers(matched, [&](int64_t timeout_ns) { session.spin_once(timeout_ns); });
  session.ready(matched(), publisher->get_actual_qos());
  session.spin_until_end();
  drain(kit, *publisher);
}

inline void publish(wattwire::Kit& kit) {
  with_types(kit, [&](auto types) { publish_as<decltype(types)>(kit); });
}

inline void subscribe(wattwire::Kit& kit) {
  with_types(kit, [&](auto types) { subscribe_as<decltype(types)>(kit); });
}

inline void relay(wattwire::Kit& kit) {
  with_types(kit, [&](auto types) { relay_as<decltype(types)>(kit); });
}
