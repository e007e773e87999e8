// Publisher and subscriber. The publisher sends each message to every subscriber's address.
#pragma once

#include "socket.hpp"

inline void publish(Kit& kit) {
  const std::vector<Address> addresses = peer_addresses(kit);
  Socket socket(kit);
  socket.bind_sender();
  socket.ready();
  kit.send_all([&](Bytes buffer) {
    bool good = true;
    for (const auto& address : addresses) good = socket.send(buffer, address) && good;
    return good;
  });
}

inline void subscribe(Kit& kit) {
  Socket socket(kit);
  socket.listen();
  socket.ready();
  kit.poll([&](int64_t timeout_ns) {
    if (auto datagram = socket.receive(timeout_ns)) kit.received(datagram->data);
  });
}
