// Client and server, ping and pong. The frame's number matches a reply to its call.
#pragma once

#include <map>

#include "links.hpp"

inline void client(Kit& kit) {
  const Streams streams = connect_all(kit);
  Stream& stream = *streams[0];
  const bool one_way = kit.integer("settings.connections") == 2;
  const auto second = one_way ? connect_replies(kit, stream) : nullptr;
  Stream& replies = one_way ? *second : stream;
  uint64_t calls = 0;
  auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    const uint64_t number = calls++;
    if (!stream.send(kRequest, number, buffer)) throw SendFailed("the connection is closed");
    // Later frames than the first one follow only a call that timed out.
    for (int64_t left = timeout_ns; replies.open() && left > 0;
         left = kit.call_begin_ns() + timeout_ns - now_ns()) {
      auto frame = replies.receive(left);
      if (frame && frame->kind == kReply && frame->number == number) return frame->payload;
    }
    if (!replies.open()) throw SendFailed("the server closed the connection");
    return std::nullopt;
  };

  std::map<uint64_t, wattwire::Slot*> waiting;
  auto poll = [&](int64_t timeout_ns) {
    auto frame = replies.receive_until(timeout_ns);
    // Sleeps if the stream is closed, so that the event loop does not spin.
    if (!replies.open()) wattwire::sleep_until_ns(now_ns() + timeout_ns);
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
  const int64_t connections = kit.integer("settings.connections");
  std::map<End, std::weak_ptr<Stream>> reply_streams;  // by the client's end of the requests
  auto answer = [&](Stream& stream, const Frame& frame) {
    if (frame.kind == kAttach) {
      const auto port = static_cast<uint16_t>(frame.number);
      reply_streams[{stream.peer().first, port}] = stream.weak_from_this();
      stream.send(kAttach, frame.number, {});
      return;
    }
    auto reply = kit.serve(frame.payload);
    std::shared_ptr<Stream> target = stream.shared_from_this();
    if (connections == 2) target = reply_streams[stream.peer()].lock();
    // Sending fails if the client has left. The server then records no call.
    if (reply && target && target->send(kReply, frame.number, *reply)) kit.served();
  };
  auto poll = [&](int64_t timeout_ns) { listener.poll(timeout_ns, answer); };
  auto matched = [&] { return listener.accepted() / connections; };
  const int64_t discovery_ns = kit.await_peers(matched, poll);
  ready(kit, listener.descriptor(), matched(), discovery_ns);
  kit.poll(poll);
}
