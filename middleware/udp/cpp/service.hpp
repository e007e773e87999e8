// Client and server, ping and pong: a request and its reply are one datagram each.
#pragma once

#include "socket.hpp"

inline void client(Kit& kit) {
  const Address address = peer_addresses(kit).at(0);
  Socket socket(kit);
  auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    const int64_t deadline = now_ns() + timeout_ns;
    if (!socket.send(buffer, address)) throw wattwire::SendFailed(std::strerror(errno));
    for (int64_t left; (left = deadline - now_ns()) > 0;) {
      auto datagram = socket.receive(left);
      if (datagram && kit.is_reply(datagram->data)) return datagram->data;
    }
    // Where nothing in such a reply tells it from a late one, those go to the old port.
    if (!kit.carries_seq() || kit.string("reply") == "literal") socket.reopen();
    return std::nullopt;
  };
  socket.ready(kit.probe(call));
  kit.call_all(call);
}

inline void server(Kit& kit) {
  Socket socket(kit);
  socket.listen();
  socket.ready();
  kit.poll([&](int64_t timeout_ns) {
    auto datagram = socket.receive(timeout_ns);
    if (!datagram) return;
    auto reply = kit.serve(datagram->data);
    if (reply && socket.send(*reply, datagram->sender)) kit.served();
  });
}
