// TCP node: length-prefixed frames on one or two connections per pair of nodes.
#include "pipeline.hpp"
#include "service.hpp"
#include "topic.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"client", client},
                {"server", server},     {"ping", client},          {"pong", server},
                {"source", publish},    {"relay", relay},          {"sink", subscribe}};
  cell.settings = {{"tcp_nodelay", Type::kBoolean},          {"tcp_quickack", Type::kString},
                   {"connections", Type::kInteger},          {"writes", Type::kInteger},
                   {"receive_buffer_bytes", Type::kInteger}, {"send_buffer_bytes", Type::kInteger},
                   {"bind_address", Type::kString}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit", "loop.open",
                       "loop.closed",    "reply.echo",    "reply.ack",  "reply.literal",
                       "literal",        "async_client"};
  return wattwire::run(argc, argv, cell);
}
