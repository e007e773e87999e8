// The Cyclone DDS cell in C++, on the C library.

#include "service.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  wattwire::run(argc, argv,
                {{"publisher", publish},
                 {"subscriber", subscribe},
                 {"server", serve},
                 {"client", call},
                 {"pong", serve},
                 {"ping", call},
                 {"source", publish},
                 {"relay", relay},
                 {"sink", subscribe}});
}
