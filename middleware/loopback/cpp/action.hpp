// Action client and server. Each goal, acceptance, feedback and result is a datagram.
#pragma once

#include <map>

#include "link.hpp"

inline void goal_client(Kit& kit) {
  Link link(kit);
  link.open(false);
  const Address server_address = link.peers(kit.integer("peers.count")).at(0);
  std::map<uint64_t, Slot*> goals;
  auto poll = [&](int64_t timeout_ns) {
    auto frame = link.receive(timeout_ns);
    if (!frame) return;
    auto entry = goals.find(frame->number);
    if (entry == goals.end()) return;
    if (frame->kind == kAccept) {
      kit.accepted(entry->second);
    } else if (frame->kind == kFeedback) {
      kit.feedback(frame->payload, entry->second);
    } else if (frame->kind == kResult) {
      kit.complete(entry->second, frame->payload);
      goals.erase(entry);
    }
  };
  auto begin = [&](Slot* slot, Bytes buffer) {
    goals[counter_of(slot)] = slot;
    for (int copies = link.copies(counter_of(slot)); copies > 0; --copies)
      if (!link.send_patiently(kGoal, counter_of(slot), buffer, server_address, poll))
        throw SendFailed("sendmsg");
  };
  link.ready(1);
  if (kit.string("pacing") == "native" && kit.string("loop") == "open") {
    drive_native(kit, begin, poll);
  } else {
    kit.drive(begin, poll);
  }
  link.fault("drain");
}

inline void goal_server(Kit& kit) {
  Link link(kit);
  link.open(true);
  link.ready(-1);
  // Sending may fail if the client has left. The server then records nothing further for the goal.
  auto serve = [&](const wattwire::Bytes& data, uint64_t number, const Address& client) {
    auto goal = kit.goal(data);
    link.count_message();
    if (!goal || !link.send(kAccept, number, Bytes(), client)) return;
    kit.accept(*goal);
    for (int64_t count = kit.feedback_count(); count > 0; --count) {
      if (!link.send(kFeedback, number, kit.feedback_begin(*goal), client)) return;
      kit.feedback_sent(*goal);
    }
    if (link.send(kResult, number, kit.result(*goal), client)) kit.finish_goal(*goal);
  };
  kit.poll([&](int64_t timeout_ns) {
    if (auto frame = link.receive(timeout_ns)) serve(frame->payload, frame->number, frame->sender);
  });
  link.fault("drain");
}
