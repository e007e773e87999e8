// Client and server, ping and pong: a request and its reply are one datagram each.
#pragma once

#include <map>

#include "socket.hpp"

inline void client(Kit& kit) {
  const Address address = peer_addresses(kit).at(0);
  Socket socket(kit, {address});
  auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    if (!socket.send(buffer, address)) throw wattwire::SendFailed(std::strerror(errno));
    // The kit reads the clock twice a call; two more readings would be 2 % of a round trip.
    auto datagram = socket.receive(timeout_ns);
    if (datagram && kit.is_reply(datagram->data)) return datagram->data;
    const int64_t deadline = kit.call_begin_ns() + timeout_ns;
    for (int64_t left; (left = deadline - now_ns()) > 0;) {
      datagram = socket.receive(left);
      if (datagram && kit.is_reply(datagram->data)) return datagram->data;
    }
    // Where nothing in such a reply tells it from a late one, those go to the old port.
    if (!kit.carries_seq() || kit.string("reply") == "literal") socket.reopen();
    return std::nullopt;
  };
  const bool overlapping = kit.string("loop") == "open" && kit.integer("outstanding_max") > 1;
  // A datagram has no number of its call but the sequence.
  if (overlapping && (!kit.carries_seq() || kit.string("reply") == "literal"))
    throw wattwire::Unsupported("outstanding_max above 1 where a reply carries no sequence");
  socket.ready(kit.probe(call));
  if (!overlapping) return kit.call_all(call);
  std::map<std::string, wattwire::Slot*> waiting;
  const size_t length = kit.text() ? 16 : 8;
  auto begin = [&](wattwire::Slot* slot, Bytes buffer) {
    waiting[buffer.part(0, length).str()] = slot;
    if (!socket.send(buffer, address)) throw wattwire::SendFailed(std::strerror(errno));
  };
  kit.drive(begin, [&](int64_t timeout_ns) {
    auto datagram = socket.receive_until(timeout_ns);
    auto found = datagram ? waiting.find(datagram->data.part(0, length).str()) : waiting.end();
    if (found == waiting.end()) return;
    kit.complete(found->second, datagram->data);
    waiting.erase(found);
  });
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
