// The ROS 1 cell in C++, on roscpp as its tutorials show it.
#include "pingpong.hpp"
#include "topic.hpp"

int main(int argc, char** argv) {
  wattwire::run(argc, argv,
                {{"publisher", publish},
                 {"subscriber", subscribe},
                 {"ping", ping},
                 {"pong", pong},
                 {"source", publish},
                 {"relay", relay},
                 {"sink", subscribe}});
}
