// TCP node: length-prefixed frames on one or two connections per pair of nodes.
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
