// The Fast DDS cell in C++.

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
