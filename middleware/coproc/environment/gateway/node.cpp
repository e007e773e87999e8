// A node of a co-processor cell: the client is the gateway, and the server starts the device.
//
// COPROC_MACHINE selects an emulated board of qemu, whose firmware is next to the node. Without it,
// the device is a process.
#include "client.hpp"
#include "server.hpp"

int main(int argc, char** argv) {
  wattwire::run(argc, argv,
                {{"client", coproc::client},
                 {"server", coproc::server},
                 {"ping", coproc::client},
                 {"pong", coproc::server}});
}
