// The ROS 2 cell on the rcl C API, on which rclcpp and rclpy are built.

#include "action_client.hpp"
#include "action_server.hpp"
#include "client.hpp"
#include "server.hpp"
#include "topic.hpp"
#include "wattwire/kit.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish},
                {"subscriber", subscribe},
                {"server", serve},
                {"client", call},
                {"pong", serve},
                {"ping", call},
                {"action_server", serve_goals},
                {"action_client", perform},
                {"source", publish},
                {"relay", relay},
                {"sink", subscribe}};
  cell.settings = {
      {"reliability", Type::kString},   {"history", Type::kString},  {"depth", Type::kInteger},
      {"durability", Type::kString},    {"rmw", Type::kString},      {"rmw_profile", Type::kString},
      {"transports", Type::kString},    {"domain", Type::kInteger},  {"discovery", Type::kString},
      {"late_feedback", Type::kString}, {"executor", Type::kString}, {"array", Type::kString}};
  cell.values = {{"executor", {"\"single\""}}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit",  "pacing.native",
                       "loop.open",      "loop.closed",   "reply.echo",  "reply.ack",
                       "reply.literal",  "literal",       "async_client"};
#ifdef WATTWIRE_ROS_POINT_CLOUDS
  cell.capabilities.push_back("encoding.pointcloud");
#endif
  return wattwire::run(argc, argv, cell);
}
