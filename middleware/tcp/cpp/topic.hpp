// Publisher and subscriber. The publisher sends each message once to every subscriber.
#pragma once

#include "links.hpp"

inline void publish(Kit& kit) {
  const int64_t begin = now_ns();
  const Streams streams = connect_all(kit);
  ready(kit, streams[0]->descriptor(), static_cast<int64_t>(streams.size()), now_ns() - begin);
  kit.send_all([&](Bytes buffer) {
    bool good = true;
    for (const auto& stream : streams) good = stream->send(kMessage, 0, buffer) && good;
    return good;
  });
}

inline void subscribe(Kit& kit) {
  Listener listener(kit);
  auto take = [&](Stream&, const Frame& frame) { kit.received(frame.payload); };
  auto poll = [&](int64_t timeout_ns) { listener.poll(timeout_ns, take); };
  const int64_t discovery_ns = kit.await_peers([&] { return listener.accepted(); }, poll);
  ready(kit, listener.descriptor(), listener.accepted(), discovery_ns);
  kit.poll(poll);
}
