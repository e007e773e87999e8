// Publisher and subscriber, with one datagram per message and subscriber.
#pragma once

#include "link.hpp"

inline void publish(Kit& kit) {
  Link link(kit);
  link.open(false);
  const std::vector<Address> peers = link.peers(kit.integer("peers.count"));
  link.ready(static_cast<int64_t>(peers.size()));
  auto transmit = [&](uint64_t counter, Bytes buffer) {
    bool good = true;
    for (int copies = link.copies(counter); copies > 0; --copies)
      for (const auto& peer : peers) good = link.send(kMessage, counter, buffer, peer) && good;
    return good;
  };
  if (kit.string("pacing") == "native") {
    drive_native(
        kit,
        [&](Slot* slot, Bytes buffer) {
          if (!transmit(counter_of(slot), buffer)) throw SendFailed("sendmsg");
          kit.complete(slot);
        },
        [](int64_t timeout_ns) { wattwire::sleep_until_ns(now_ns() + timeout_ns); });
  } else {
    uint64_t counter = 0;
    kit.send_all([&](Bytes buffer) { return transmit(counter++, buffer); });
  }
  link.fault("drain");
}

inline void subscribe(Kit& kit) {
  Link link(kit);
  link.open(true);
  link.ready(-1);
  kit.poll([&](int64_t timeout_ns) {
    if (auto frame = link.receive(timeout_ns)) {
      kit.received(frame->payload);
      link.count_message();
    }
  });
  link.fault("drain");
}
