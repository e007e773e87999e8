// UDP node: one datagram per message, blocking sockets.
#include "pipeline.hpp"
#include "service.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  wattwire::run(argc, argv,
                {{"publisher", publish},
                 {"subscriber", subscribe},
                 {"client", client},
                 {"server", server},
                 {"ping", client},
                 {"pong", server},
                 {"source", publish},
                 {"relay", relay},
                 {"sink", subscribe}});
}
