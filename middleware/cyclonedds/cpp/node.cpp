// The Cyclone DDS cell in C++, on the C library.

#include "service.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"publisher", publish}, {"subscriber", subscribe}, {"server", serve},
                {"client", call},       {"pong", serve},           {"ping", call}};
  cell.settings = {{"reliability", wattwire::one_of({"reliable", "best_effort"})},
                   {"history", wattwire::one_of({"keep_last", "keep_all"})},
                   {"depth", wattwire::integer(1, INT32_MAX)},
                   {"interface", wattwire::string()},
                   {"domain", wattwire::integer(0, 230)}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "encoding.record", "pacing.kit",
                       "loop.open",      "loop.closed",   "reply.echo",      "reply.ack",
                       "reply.literal",  "literal",       "async_client"};
  return wattwire::run(argc, argv, cell);
}
