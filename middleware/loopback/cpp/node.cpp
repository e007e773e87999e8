// Loopback node: datagrams of AF_UNIX between processes of one host.
#include "action.hpp"
#include "service.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  const wattwire::Rule stage = wattwire::one_of({"none", "before_ready", "window", "drain"});
  const wattwire::Rule number = wattwire::integer(0, INT32_MAX);
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish},
                {"subscriber", subscribe},
                {"client", client},
                {"server", server},
                {"ping", client},
                {"pong", server},
                {"action_client", goal_client},
                {"action_server", goal_server}};
  cell.settings = {{"fault_role", wattwire::string()},
                   {"die_at", stage},
                   {"hang_at", stage},
                   {"drop_every", number},
                   {"drop_counters", wattwire::string()},
                   {"duplicate_every", number},
                   {"delay_us", number}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit",      "pacing.native",
                       "loop.open",      "loop.closed",   "reply.echo",      "reply.ack",
                       "reply.literal",  "literal",       "encoding.record", "async_client"};
  cell.payload_bytes_max = 196608;
  cell.record_bytes_max = 57344;
  return wattwire::run(argc, argv, cell);
}
