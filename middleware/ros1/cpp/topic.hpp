// Topic and pipeline patterns: the payload is the data of a std_msgs message.
#pragma once

#include "session.hpp"

inline void publish(Kit& kit) {
  with_type(kit, [&](auto message) {
    Session<decltype(message)> session(kit);
    session.publish_on(kit.sending_topic());
    session.await_matched();
    session.ready();
    kit.send_all([&](Bytes buffer) {
      session.publish(buffer);
      return true;
    });
    session.drain();
  });
}

inline void subscribe(Kit& kit) {
  with_type(kit, [&](auto message) {
    Session<decltype(message)> session(kit);
    session.subscribe(kit.receiving_topic(),
                      [&](const auto& arrived) { kit.received(view(arrived)); });
    session.await_matched();
    session.ready();
    kit.poll([&](int64_t timeout_ns) { session.spin(timeout_ns); });
  });
}

inline void relay(Kit& kit) {
  with_type(kit, [&](auto type) {
    Session<decltype(type)> session(kit);
    session.publish_on(kit.sending_topic());
    session.subscribe(kit.receiving_topic(), [&](const auto& arrived) {
      const auto message = kit.relay(view(arrived));
      if (!message) return;
      session.publish(arrived);
      kit.relayed(*message);
    });
    session.await_matched();
    session.ready();
    kit.poll([&](int64_t timeout_ns) { session.spin(timeout_ns); });
    session.drain();
  });
}
