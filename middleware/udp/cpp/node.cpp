// UDP node: one datagram per message, blocking sockets.
#include "service.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  const wattwire::Rule buffer_bytes = wattwire::integer(0, (1 << 30) - 1);
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"client", client},
                {"server", server},     {"ping", client},          {"pong", server}};
  cell.settings = {{"receive_buffer_bytes", buffer_bytes},
                   {"send_buffer_bytes", buffer_bytes},
                   {"bind_address", wattwire::string()},
                   {"bind_port", wattwire::integer(0, 65535)},
                   {"endpoint_override", wattwire::string()}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit", "loop.open",
                       "loop.closed",    "reply.echo",    "reply.ack",  "reply.literal",
                       "literal",        "async_client"};
  cell.payload_bytes_max = 65507;
  return wattwire::run(argc, argv, cell);
}
