// gRPC node: the synchronous server and the blocking stub.
#include "client.hpp"
#include "server.hpp"

int main(int argc, char** argv) {
  wattwire::run(argc, argv, {{"client", call}, {"server", serve}, {"ping", call}, {"pong", serve}});
}
