// Client and ping: each call is one exchange with the device.
#pragma once

#include "device.hpp"
#include "exchange.hpp"

namespace coproc {

// Returns settings.piece_bytes, or throws if the cell's device does not support it.
inline size_t piece_bytes(const wattwire::Kit& kit) {
  const int64_t bytes = kit.integer("settings.piece_bytes", 64, 65472);
  if (bytes % BLOCK_BYTES != 0 || bytes > kPieceBytesMax)
    throw wattwire::Unsupported("settings.piece_bytes " + std::to_string(bytes) +
                                "; this cell supports multiples of 16 up to " +
                                std::to_string(kPieceBytesMax));
  return static_cast<size_t>(bytes);
}

inline size_t pieces_in_flight(const wattwire::Kit& kit) {
  return static_cast<size_t>(kit.integer("settings.pieces_in_flight", 1, 64));
}

// Fills READY as far as it is the same for both roles.
inline wattwire::Ready ready_line(const std::string& description) {
  const size_t tab = std::min(description.find('\t'), description.size());
  wattwire::Ready ready;
  ready.library = {description.substr(0, tab),
                   tab == description.size() ? "unknown" : description.substr(tab + 1),
                   "gateway: gcc " __VERSION__};
  ready.effective["transport"] = "udp/ipv4";
  ready.effective["device"] = kDevice;
  ready.guarantee = {"best_effort", "none", "drop_newest"};
  return ready;
}

inline void client(wattwire::Kit& kit) {
  const wattwire::Names endpoints = kit.strings("peers.endpoints");
  if (endpoints.empty())
    throw wattwire::BadSpec("peers.endpoints", "[]", "at least one IPv4-ADDRESS:PORT");
  Exchange exchange(kit.string("host.address"), address_of("peers.endpoints", endpoints[0]),
                    piece_bytes(kit), pieces_in_flight(kit));
  const operation task = kit.string("reply") == "encrypt" ? OPERATION_ENCRYPT : OPERATION_ECHO;
  auto call = [&](Bytes request, int64_t timeout_ns) {
    return exchange.call(task, request, kit.call_begin_ns() + timeout_ns);
  };
  const int64_t discovery_ns = kit.probe(call);
  wattwire::Ready ready = ready_line(exchange.description(now_ns() + 1000000000));
  ready.discovery_ns = discovery_ns;
  kit.ready(ready);
  kit.call_all(call);
  exchange.drain();
}

}  // namespace coproc
