// Topic pattern: std_msgs/String carries text, wattwire_interfaces/Bytes carries bytes.

#pragma once

#include <rcl/publisher.h>
#include <rcl/subscription.h>

#include <chrono>
#include <thread>

#include "messages.hpp"
#include "schedule.hpp"

// Waits until the publisher's messages are sent, because destroying its endpoint would discard
// them. Reliable QoS has acknowledgements. Best effort has none, so the node waits for a fixed
// time.
inline void drain(wattwire::Kit& kit, const rcl_publisher_t& publisher) {
  if (kit.string("settings.reliability") == "reliable") {
    ignore(rcl_publisher_wait_for_all_acked(&publisher, RCL_MS_TO_NS(kit.integer("linger_ms"))));
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(kit.integer("quiet_ms")));
  }
}

template <typename Type>
void publish_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  rcl_publisher_options_t options = rcl_publisher_get_default_options();
  options.qos = session.qos(true);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  check(rcl_publisher_init(&publisher, session.node(), Type::support(),
                           session.name("topic").c_str(), &options),
        "rcl_publisher_init");
  auto nothing = [](rcl_wait_set_t*) {};
  auto matched = [&]() -> int64_t {
    size_t count = 0;
    check(rcl_publisher_get_subscription_count(&publisher, &count), "subscription count");
    return static_cast<int64_t>(count);
  };
  kit.await_peers(matched, [&](int64_t timeout_ns) { session.wait(timeout_ns, nothing); });
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  session.ready(matched(), discovery_ns, rcl_publisher_get_actual_qos(&publisher));

  Owned<Type> owned;
  auto send = [&](wattwire::Bytes buffer) {
    assign(owned.message.data, buffer);
    const bool sent = rcl_publish(&publisher, &owned.message, nullptr) == RCL_RET_OK;
    if (!sent) rcl_reset_error();
    return sent;
  };
  if (kit.string("pacing") == "native") {
    auto act = [&](wattwire::Slot* slot, wattwire::Bytes buffer) {
      send(buffer) ? kit.complete(slot) : kit.fail(slot);
    };
    drive_native(session, act, nothing, nothing);
  } else {
    kit.send_all(send);
  }
  drain(kit, publisher);
  check(rcl_publisher_fini(&publisher, session.node()), "rcl_publisher_fini");
}

template <typename Type>
void subscribe_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  rcl_subscription_options_t options = rcl_subscription_get_default_options();
  options.qos = session.qos(true);
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  check(rcl_subscription_init(&subscription, session.node(), Type::support(),
                              session.name("topic").c_str(), &options),
        "rcl_subscription_init");
  Owned<Type> owned;
  rmw_message_info_t info;
  auto spin = [&](int64_t timeout_ns) {
    rcl_wait_set_t* set = session.wait(timeout_ns, [&](rcl_wait_set_t* empty) {
      check(rcl_wait_set_add_subscription(empty, &subscription, nullptr), "add subscription");
    });
    if (set->subscriptions[0] == nullptr) return;
    if (rcl_take(&subscription, &owned.message, &info, nullptr) == RCL_RET_OK) {
      kit.received(view(owned.message.data));
    } else {
      rcl_reset_error();
    }
  };
  auto matched = [&]() -> int64_t {
    size_t count = 0;
    check(rcl_subscription_get_publisher_count(&subscription, &count), "publisher count");
    return static_cast<int64_t>(count);
  };
  kit.await_peers(matched, spin);
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  session.ready(matched(), discovery_ns, rcl_subscription_get_actual_qos(&subscription));
  session.spin_until_end(spin);
  check(rcl_subscription_fini(&subscription, session.node()), "rcl_subscription_fini");
}

inline void publish(wattwire::Kit& kit) {
  kit.text() ? publish_as<TextTopic>(kit) : publish_as<BytesTopic>(kit);
}

inline void subscribe(wattwire::Kit& kit) {
  kit.text() ? subscribe_as<TextTopic>(kit) : subscribe_as<BytesTopic>(kit);
}
