// Client and server, ping and pong. The frame's number matches a reply to its call.
#pragma once

#include <map>

#include "links.hpp"

inline void client(Kit& kit) {
  const Streams streams = connect_all(kit);
  Stream& stream = *streams[0];
  uint64_t calls = 0;
  auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    const uint64_t number = calls++;
    const int64_t deadline = now_ns() + timeout_ns;
    if (!stream.send(kRequest, number, buffer)) throw SendFailed("the connection is closed");
    for (int64_t left; stream.open() && (left = deadline - now_ns()) > 0;) {
      auto frame = stream.receive(left);
      if (frame && frame->kind == kReply && frame->number == number) return frame->payload;
    }
    if (!stream.open()) throw SendFailed("the server closed the connection");
    return std::nullopt;
  };

  std::map<uint64_t, wattwire::Slot*> waiting;
  auto poll = [&](int64_t timeout_ns) {
    auto frame = stream.receive(timeout_ns);
    // Sleeps if the stream is closed, so that the event loop does not spin.
    if (!stream.open()) wattwire::sleep_until_ns(now_ns() + timeout_ns);
    if (!frame) return;
    auto entry = waiting.find(frame->number);
    if (entry == waiting.end()) return;
    kit.complete(entry->second, frame->payload);
    waiting.erase(entry);
  };
  auto begin = [&](wattwire::Slot* slot, Bytes buffer) {
    const uint64_t number = calls++;
    waiting[number] = slot;
    auto idle = [&](int64_t left_ns) {
      poll(0);
      if (stream.open()) wait_for(stream.descriptor(), POLLOUT, std::min<int64_t>(left_ns, 200000));
    };
    if (!stream.send(kRequest, number, buffer, idle)) throw SendFailed("the connection is closed");
  };

  ready(kit, stream.descriptor(), 1, kit.probe(call));
  if (kit.string("loop") == "open" && kit.integer("outstanding_max") > 1) {
    kit.drive(begin, poll);
  } else {
    kit.call_all(call);
  }
}

inline void server(Kit& kit) {
  Listener listener(kit);
  auto answer = [&](Stream& stream, const Frame& frame) {
    auto reply = kit.serve(frame.payload);
    // Sending fails if the client has left. The server then records no call.
    if (reply && stream.send(kReply, frame.number, *reply)) kit.served();
  };
  auto poll = [&](int64_t timeout_ns) { listener.poll(timeout_ns, answer); };
  const int64_t discovery_ns = kit.await_peers([&] { return listener.accepted(); }, poll);
  ready(kit, listener.descriptor(), listener.accepted(), discovery_ns);
  kit.poll(poll);
}
