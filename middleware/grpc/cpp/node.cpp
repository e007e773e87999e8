// gRPC node: the synchronous server and the blocking stub.
#include "client.hpp"
#include "server.hpp"

using wattwire::Type;

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"client", call}, {"server", serve}, {"ping", call}, {"pong", serve}};
  cell.settings = {
      {"keep_alive", Type::kString}, {"tls", Type::kBoolean}, {"server_workers", Type::kInteger}};
  cell.values = {{"server_workers", {"0"}}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "encoding.record", "pacing.kit",
                       "loop.open",      "loop.closed",   "reply.echo",      "reply.ack",
                       "reply.literal",  "literal",       "async_client",    "tls"};
  cell.payload_bytes_max = 4000000;
  cell.record_bytes_max = 3000000;
  return wattwire::run(argc, argv, cell);
}
