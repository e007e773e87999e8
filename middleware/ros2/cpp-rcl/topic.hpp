// Topic and pipeline patterns: ROS topics of the encoding's message type.

#pragma once

#include "endpoints.hpp"
#include "schedule.hpp"

template <typename Type>
void publish_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  Publisher<Type> publisher(session, kit.sending_topic());
  auto nothing = [](rcl_wait_set_t*) {};
  auto matched = [&] { return publisher.matched(); };
  kit.await_peers(matched, [&](int64_t timeout_ns) { session.wait(timeout_ns, nothing); });
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  session.ready(matched(), discovery_ns, publisher.granted());

  Owned<Type> owned;
  prepare(kit, owned.message);
  auto send = [&](wattwire::Bytes buffer) {
    assign(owned.message.data, buffer);
    return publisher.publish(owned.message);
  };
  if (kit.string("pacing") == "native") {
    auto act = [&](wattwire::Slot* slot, wattwire::Bytes buffer) {
      send(buffer) ? kit.complete(slot) : kit.fail(slot);
    };
    drive_native(session, act, nothing, nothing);
  } else {
    kit.send_all(send);
  }
  publisher.drain();
}

template <typename Type>
void subscribe_as(wattwire::Kit& kit) {
  using Message = typename Type::Message;
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  Subscription<Type> subscription(session, kit.receiving_topic());
  auto receive = [&](const Message& message) { kit.received(view(message.data)); };
  auto spin = [&](int64_t timeout_ns) { subscription.spin(timeout_ns, receive); };
  auto matched = [&] { return subscription.matched(); };
  kit.await_peers(matched, spin);
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  session.ready(matched(), discovery_ns, subscription.granted());
  session.spin_until_end(spin);
}

template <typename Type>
void relay_as(wattwire::Kit& kit) {
  using Message = typename Type::Message;
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  Publisher<Type> publisher(session, kit.sending_topic());
  Subscription<Type> subscription(session, kit.receiving_topic());
  auto pass_on = [&](const Message& arrived) {
    const auto message = kit.relay(view(arrived.data));
    if (!message) return;
    publisher.publish(arrived) ? kit.relayed(*message) : kit.relay_failed(*message);
  };
  auto spin = [&](int64_t timeout_ns) { subscription.spin(timeout_ns, pass_on); };
  auto matched = [&] { return publisher.matched() > 0 ? 1 + subscription.matched() : 0; };
  kit.await_peers(matched, spin);
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  session.ready(matched(), discovery_ns, publisher.granted());
  session.spin_until_end(spin);
  publisher.drain();
}

inline void publish(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) { publish_as<decltype(type)>(kit); });
}

inline void subscribe(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) { subscribe_as<decltype(type)>(kit); });
}

inline void relay(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) { relay_as<decltype(type)>(kit); });
}
