// The ROS 1 cell in C++, on roscpp as its tutorials show it.
#include "pingpong.hpp"
#include "topic.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"ping", ping},
                {"pong", pong},         {"source", publish},       {"relay", relay},
                {"sink", subscribe}};
  cell.settings = {{"wait", Type::kString},
                   {"transport", Type::kString},
                   {"tcp_nodelay", Type::kBoolean},
                   {"queue_size", Type::kInteger}};
  cell.values = {{"wait", {"\"callback\"", "\"rate\""}}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit",
                       "loop.open",      "loop.closed",   "reply.echo",
                       "reply.ack",      "reply.literal", "literal"};
  return wattwire::run(argc, argv, cell);
}
