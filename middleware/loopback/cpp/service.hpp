// Client and server, ping and pong. The frame's number matches a reply to its call.
#pragma once

#include <map>

#include "link.hpp"

inline void client(Kit& kit) {
  Link link(kit);
  link.open(false);
  const Address server_address = link.peers(kit.integer("peers.count")).at(0);
  uint64_t calls = 0;
  auto call = [&](Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    const uint64_t counter = calls++;
    const int64_t deadline = now_ns() + timeout_ns;
    for (int copies = link.copies(counter); copies > 0; --copies)
      if (!link.send(kRequest, counter, buffer, server_address)) throw SendFailed("sendmsg");
    for (int64_t left; (left = deadline - now_ns()) > 0;) {
      auto frame = link.receive(left);
      if (frame && frame->kind == kReply && frame->number == counter) return frame->payload;
    }
    return std::nullopt;
  };

  std::map<uint64_t, Slot*> waiting;
  auto poll = [&](int64_t timeout_ns) {
    auto frame = link.receive(timeout_ns);
    if (!frame) return;
    auto entry = waiting.find(frame->number);
    if (entry == waiting.end()) return;
    kit.complete(entry->second, frame->payload);
    waiting.erase(entry);
  };
  auto begin = [&](Slot* slot, Bytes buffer) {
    waiting[counter_of(slot)] = slot;
    for (int copies = link.copies(counter_of(slot)); copies > 0; --copies)
      if (!link.send_patiently(kRequest, counter_of(slot), buffer, server_address, poll))
        throw SendFailed("sendmsg");
  };

  link.ready(1);
  const bool open_loop = kit.string("loop") == "open";
  if (open_loop && kit.string("pacing") == "native") {
    drive_native(kit, begin, poll);
  } else if (open_loop && kit.integer("outstanding_max") > 1) {
    kit.drive(begin, poll);
  } else {
    kit.call_all(call);
  }
  link.fault("drain");
}

inline void server(Kit& kit) {
  Link link(kit);
  link.open(true);
  link.ready(-1);
  kit.poll([&](int64_t timeout_ns) {
    auto frame = link.receive(timeout_ns);
    if (!frame) return;
    auto reply = kit.serve(frame->payload);
    link.count_message();
    // Sending fails if the client has left. The server then records no call.
    if (reply && link.send(kReply, frame->number, *reply, frame->sender)) kit.served();
  });
  link.fault("drain");
}
