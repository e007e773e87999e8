// Pingpong over two topics. `wait` selects how ping waits for the reply.
#pragma once

#include "session.hpp"

constexpr double kRateHz = 100;

inline void pong(Kit& kit) {
  with_type(kit, [&](auto message) {
    Session<decltype(message)> session(kit);
    session.publish_on("reply");
    session.subscribe("request", [&](const auto& request) {
      const auto reply = kit.serve(view(request));
      if (!reply) return;
      session.publish(*reply);
      kit.served();
    });
    session.await_matched();
    session.ready();
    kit.poll([&](int64_t timeout_ns) { session.spin(timeout_ns); });
    session.drain();
  });
}

inline void ping(Kit& kit) {
  with_type(kit, [&](auto message) {
    Session<decltype(message)> session(kit);
    const bool by_rate = kit.string("settings.wait") == "rate";
    std::vector<uint8_t> reply;
    bool has_reply = false;
    session.publish_on("request");
    session.subscribe("reply", [&](const auto& arrived) {
      const Bytes data = view(arrived);
      // A std_msgs message has no call number: only the payload identifies the call.
      if (has_reply || !kit.is_reply(data)) return;
      reply.assign(data.data, data.data + data.size);
      has_reply = true;
    });
    auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
      const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
      has_reply = false;
      session.publish(buffer);
      ros::Rate rate(kRateHz);
      for (int64_t left_ns; (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
        if (by_rate) {
          ros::spinOnce();
        } else {
          session.spin(left_ns);
        }
        if (has_reply) return Bytes(reply.data(), reply.size());
        if (by_rate) rate.sleep();
      }
      return std::nullopt;
    };
    session.await_matched();
    kit.probe(call);
    session.ready();
    kit.call_all(call);
    session.drain();
  });
}
