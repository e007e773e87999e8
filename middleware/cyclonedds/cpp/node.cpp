// The Cyclone DDS cell in C++, on the C library.

#include "service.hpp"
#include "topic.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"server", serve},
                {"client", call},       {"pong", serve},           {"ping", call},
                {"source", publish},    {"relay", relay},          {"sink", subscribe}};
  cell.settings = {{"reliability", Type::kString}, {"history", Type::kString},
                   {"depth", Type::kInteger},      {"interface", Type::kString},
                   {"multicast", Type::kBoolean},  {"domain", Type::kInteger}};
  cell.capabilities = {
      "encoding.bytes", "encoding.text", "encoding.record", "encoding.pointcloud",
      "pacing.kit",     "loop.open",     "loop.closed",     "reply.echo",
      "reply.ack",      "reply.literal", "literal",         "async_client",
  };
  return wattwire::run(argc, argv, cell);
}
