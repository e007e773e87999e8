// Client and server, ping and pong. Each request and each reply is a datagram.
#pragma once

#include <map>

#include "socket.hpp"

inline void client(Kit& kit) {
  const Address address = peer_addresses(kit).at(0);
  Socket socket(kit);
  socket.bind_sender();
  auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    if (!socket.send(buffer, address)) throw wattwire::SendFailed(std::strerror(errno));
    // The kit reads the clock twice per call. Two more readings would cost 2 % of a round trip.
    auto datagram = socket.receive(timeout_ns);
    if (datagram && kit.is_reply(datagram->data)) return datagram->data;
    const int64_t deadline = kit.call_begin_ns() + timeout_ns;
    for (int64_t left; (left = deadline - now_ns()) > 0;) {
      datagram = socket.receive(left);
      if (datagram && kit.is_reply(datagram->data)) return datagram->data;
    }
    // If replies carry no sequence, a new port separates them from late replies.
    if (!kit.carries_seq() || kit.string("reply") == "literal") socket.reopen();
    return std::nullopt;
  };
  const bool overlapping = kit.string("loop") == "open" && kit.integer("outstanding_max") > 1;
  // Only the sequence matches a datagram to its call.
  if (overlapping && (!kit.carries_seq() || kit.string("reply") == "literal"))
    throw wattwire::Unsupported("outstanding_max above 1, because replies carry no sequence");
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
    auto entry = datagram ? waiting.find(datagram->data.part(0, length).str()) : waiting.end();
    if (entry == waiting.end()) return;
    kit.complete(entry->second, datagram->data);
    waiting.erase(entry);
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
