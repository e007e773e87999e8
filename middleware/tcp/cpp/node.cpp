// TCP node: length-prefixed frames, one connection for each pair of nodes.
#include "service.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  const wattwire::Rule buffer_bytes = wattwire::integer(0, (1 << 30) - 1);
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"client", client},
                {"server", server},     {"ping", client},          {"pong", server}};
  cell.settings = {{"tcp_nodelay", wattwire::boolean()}, {"tcp_quickack", wattwire::boolean()},
                   {"writes", wattwire::integer(1, 2)},  {"receive_buffer_bytes", buffer_bytes},
                   {"send_buffer_bytes", buffer_bytes},  {"bind_address", wattwire::string()}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "pacing.kit", "loop.open",
                       "loop.closed",    "reply.echo",    "reply.ack",  "reply.literal",
                       "literal",        "async_client"};
  return wattwire::run(argc, argv, cell);
}
