// UDP node: one datagram per message, blocking sockets.
#include "pipeline.hpp"
#include "service.hpp"
#include "topic.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"client", client},
                {"server", server},     {"ping", client},          {"pong", server},
                {"source", publish},    {"relay", relay},          {"sink", subscribe}};
  cell.settings = {{"receive_buffer_bytes", Type::kInteger},
                   {"send_buffer_bytes", Type::kInteger},
                   {"bind_address", Type::kString},
                   {"bind_port", Type::kInteger},
                   {"endpoint_override", Type::kString}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit", "loop.open",
                       "loop.closed",    "reply.echo",    "reply.ack",  "reply.literal",
                       "literal",        "async_client"};
  cell.payload_bytes_max = 65507;
  return wattwire::run(argc, argv, cell);
}
