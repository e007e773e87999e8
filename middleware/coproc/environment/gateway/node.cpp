// A node of a co-processor cell: the client is the gateway, and the server starts the device.
//
// COPROC_MACHINE selects an emulated board of qemu, whose firmware is next to the node. Without it,
// the device is a process.
#include "client.hpp"
#include "server.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"client", coproc::client},
                {"server", coproc::server},
                {"ping", coproc::client},
                {"pong", coproc::server}};
  cell.settings = {{"piece_bytes", Type::kInteger},
                   {"pieces_in_flight", Type::kInteger},
                   {"count_instructions", Type::kBoolean}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit",    "loop.open",
                       "loop.closed",    "reply.echo",    "reply.encrypt", "server_unrecorded"};
  if (!coproc::kIsBoard) cell.values = {{"count_instructions", {"false"}}};
  cell.payload_bytes_max = 1048616;
  return wattwire::run(argc, argv, cell);
}
