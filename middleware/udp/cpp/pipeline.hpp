// Relay of a pipeline. It sends from a second socket, and only to its successor.
#pragma once

#include "socket.hpp"

inline void relay(Kit& kit) {
  Socket socket(kit);
  socket.listen();
  const Address successor = addresses_of("peers.endpoints", kit.strings("peers.endpoints")).back();
  Socket sender(kit);
  sender.bind_sender();
  socket.ready();
  kit.poll([&](int64_t timeout_ns) {
    const auto datagram = socket.receive(timeout_ns);
    if (!datagram) return;
    const auto message = kit.relay(datagram->data);
    if (!message) return;
    const bool sent = sender.send(datagram->data, successor);
    sent ? kit.relayed(*message) : kit.relay_failed(*message);
  });
}
