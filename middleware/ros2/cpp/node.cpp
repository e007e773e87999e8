// The ROS 2 cell in C++, on rclcpp as its tutorials show it.

#include "action.hpp"
#include "service.hpp"
#include "topic.hpp"
#include "wattwire/kit.hpp"

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish},
                {"subscriber", subscribe},
                {"server", serve},
                {"client", call},
                {"pong", serve},
                {"ping", call},
                {"action_server", serve_goals},
                {"action_client", perform}};
  cell.settings = {{"reliability", wattwire::one_of({"reliable", "best_effort"})},
                   {"history", wattwire::one_of({"keep_last", "keep_all"})},
                   {"depth", wattwire::integer(1, INT32_MAX)},
                   {"durability", wattwire::one_of({"volatile", "transient_local"})},
                   {"rmw", wattwire::string()},
                   {"rmw_profile", wattwire::string()},
                   {"transports", wattwire::one_of({"default", "udp"})},
                   {"domain", wattwire::integer(0, 101)},
                   {"discovery", wattwire::one_of({"localhost", "subnet"})},
                   {"late_feedback", wattwire::one_of({"keep", "drop"})}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit",  "pacing.native",
                       "loop.open",      "loop.closed",   "reply.echo",  "reply.ack",
                       "reply.literal",  "literal",       "async_client"};
  return wattwire::run(argc, argv, cell);
}
