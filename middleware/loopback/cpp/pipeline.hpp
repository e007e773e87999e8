// Relay of a pipeline. It sends the bytes that arrived, so it does not encode a record again.
#pragma once

#include "link.hpp"

inline void relay(Kit& kit) {
  Link link(kit);
  link.open(true);
  const Address successor = link.peers(1).back();
  link.ready(-1);
  kit.poll([&](int64_t timeout_ns) {
    const auto frame = link.receive(timeout_ns);
    if (!frame) return;
    const auto message = kit.relay(frame->payload);
    if (!message) return;
    bool good = true;
    for (int copies = link.copies(frame->number); copies > 0; --copies)
      good = link.send(kMessage, frame->number, frame->encoded, successor) && good;
    good ? kit.relayed(*message) : kit.relay_failed(*message);
  });
  link.fault("drain");
}
