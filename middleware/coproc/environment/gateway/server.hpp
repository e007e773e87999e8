// Server and pong: start the device, wait until it answers, and end it with the node (C-34).
#pragma once

#include "client.hpp"
#include "device_process.hpp"

namespace coproc {

// Encrypts as many blocks as a piece of `bytes` holds, and adds their number and that of the
// executed instructions to READY. The instructions are the ticks of the board's timer, in which
// each takes the same time.
inline void count_instructions(Exchange& exchange, size_t bytes, int64_t deadline_ns,
                               wattwire::Ready* ready) {
  constexpr size_t kFrame = BLOCKS_AT + TRAILER_BYTES;
  const std::vector<uint8_t> request(kFrame + (bytes - kFrame) / BLOCK_BYTES * BLOCK_BYTES);
  const Bytes message(request.data(), request.size());
  if (!exchange.call(OPERATION_ENCRYPT, message, deadline_ns) || exchange.blocks() == 0 ||
      exchange.ticks_per_second() == 0)
    throw wattwire::MiddlewareFailed("the device did not report the ticks of its timer");
  const uint64_t elapsed_ns = exchange.ticks() * 1000000000 / exchange.ticks_per_second();
  ready->effective["counted_blocks"] = exchange.blocks();
  ready->effective["counted_instructions"] = elapsed_ns / kInstructionNs;
}

inline void server(wattwire::Kit& kit) {
  const std::string& host = kit.string("host.address");
  const size_t bytes = piece_bytes(kit);
  const bool counts = kit.boolean("settings.count_instructions");
  kit.keep_no_records();
  // The device binds this port as soon as it is free again.
  const Address address = Socket(host).address();
  DeviceProcess device(device_command(address, counts));
  const int64_t begin_ns = now_ns();
  const int64_t deadline_ns = begin_ns + kit.integer("ready_timeout_ms") * 1000000;
  Exchange exchange(host, address, bytes, pieces_in_flight(kit));
  std::string description;
  while (description.empty()) {
    device.watch(1000000);
    if (now_ns() > deadline_ns)
      throw wattwire::MiddlewareFailed("the device did not answer within ready_timeout_ms = " +
                                       std::to_string(kit.integer("ready_timeout_ms")) +
                                       "; its firmware hangs, or the machine is overloaded");
    description = exchange.description(now_ns() + 100000000);
  }
  wattwire::Ready ready = ready_line(description);
  if (counts) count_instructions(exchange, bytes, deadline_ns, &ready);
  kit.listening({text_of(address)});
  kit.ready(ready);
  kit.poll([&](int64_t timeout_ns) { device.watch(timeout_ns); });
}

}  // namespace coproc
