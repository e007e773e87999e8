// Relay of a pipeline: one connection from the predecessor, and one to the successor.
#pragma once

#include "links.hpp"

inline void relay(Kit& kit) {
  Listener listener(kit);
  const auto successor = connect_to(kit, kit.strings("peers.endpoints").back());
  auto pass_on = [&](Stream&, const Frame& frame) {
    const auto message = kit.relay(frame.payload);
    if (!message) return;
    const bool sent = successor->send(kMessage, 0, frame.payload);
    sent ? kit.relayed(*message) : kit.relay_failed(*message);
  };
  auto poll = [&](int64_t timeout_ns) { listener.poll(timeout_ns, pass_on); };
  auto matched = [&] { return listener.accepted() + 1; };  // the successor is connected
  const int64_t discovery_ns = kit.await_peers(matched, poll);
  ready(kit, successor->descriptor(), matched(), discovery_ns);
  kit.poll(poll);
}
