// Member of a topology, with a socket for each of its publishers and subscribers.
#pragma once

#include <memory>

#include "link.hpp"

// Returns the addresses of a publisher's subscribers. Members know these names, because each of
// them may need all others before it is READY.
inline std::vector<Address> addresses_of_peers(const Kit& part) {
  std::vector<Address> addresses;
  for (const int64_t node : part.integers("peers.nodes"))
    addresses.push_back(Address::of("wattwire-" + part.string("run") + "-" + std::to_string(node)));
  return addresses;
}

inline void member(Kit& kit) {
  const int64_t began_ns = now_ns();
  std::vector<std::unique_ptr<Link>> links;
  std::vector<std::vector<Address>> peers;
  for (const auto& part : kit.parts()) {
    links.push_back(std::make_unique<Link>(*part));
    peers.push_back(part->publishes() ? addresses_of_peers(*part) : std::vector<Address>());
    links.back()->fault("before_ready");
  }
  wattwire::Ready ready = links.front()->granted();
  ready.matched = 0;  // the sum, or -1 if a part is a subscriber, which does not know its peers
  for (size_t number = 0; number < links.size(); ++number) {
    Kit& part = *kit.parts()[number];
    if (part.publishes()) part.await_peers([&] { return links[number]->bound(peers[number]); });
    const int64_t matched = part.publishes() ? static_cast<int64_t>(peers[number].size()) : -1;
    ready.parts.push_back(part.entry(matched, ready.effective));
    ready.matched = ready.matched < 0 || matched < 0 ? -1 : ready.matched + matched;
  }
  ready.discovery_ns = now_ns() - began_ns;
  kit.ready(ready);
  std::vector<uint64_t> counters(links.size(), 0);
  auto send = [&](size_t number, Bytes buffer) {
    const uint64_t counter = counters[number]++;
    bool good = true;
    for (int copies = links[number]->copies(counter); copies > 0; --copies)
      for (const auto& peer : peers[number])
        good = links[number]->send(kMessage, counter, buffer, peer) && good;
    return good;
  };
  std::vector<pollfd> readable(links.size());
  auto poll_once = [&](int64_t timeout_ns) {
    for (size_t number = 0; number < links.size(); ++number) {
      const bool receives = !kit.parts()[number]->publishes();
      readable[number] = {receives ? links[number]->descriptor() : -1, POLLIN, 0};
    }
    const timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (ppoll(readable.data(), readable.size(), &timeout, nullptr) <= 0) return;
    for (size_t number = 0; number < links.size(); ++number) {
      if (readable[number].revents == 0) continue;
      if (auto frame = links[number]->receive(0)) {
        kit.parts()[number]->received(frame->payload);
        links[number]->count_message();
      }
    }
  };
  kit.drive_parts(send, poll_once);
  for (const auto& link : links) link->fault("drain");
}
