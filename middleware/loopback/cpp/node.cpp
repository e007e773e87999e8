// Loopback node: AF_UNIX datagrams between processes of a host.
#include "action.hpp"
#include "pipeline.hpp"
#include "service.hpp"
#include "topic.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish},
                {"subscriber", subscribe},
                {"client", client},
                {"server", server},
                {"ping", client},
                {"pong", server},
                {"action_client", goal_client},
                {"action_server", goal_server},
                {"source", publish},
                {"relay", relay},
                {"sink", subscribe}};
  cell.settings = {{"fault_role", Type::kString},    {"die_at", Type::kString},
                   {"hang_at", Type::kString},       {"drop_every", Type::kInteger},
                   {"drop_counters", Type::kString}, {"duplicate_every", Type::kInteger},
                   {"delay_us", Type::kInteger}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit", "pacing.native",
                       "loop.open",      "loop.closed",   "reply.echo", "reply.ack",
                       "reply.literal",  "reply.encrypt", "literal",    "encoding.record",
                       "async_client"};
  cell.payload_bytes_max = 196608;
  cell.record_bytes_max = 57344;
  return wattwire::run(argc, argv, cell);
}
