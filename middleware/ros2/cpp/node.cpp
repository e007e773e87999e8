// The ROS 2 cell in C++ on rclcpp, as in its tutorials.

#include "action.hpp"
#include "service.hpp"
#include "topic.hpp"
#include "wattwire/kit.hpp"

int main(int argc, char** argv) {
  wattwire::run(argc, argv,
                {{"publisher", publish},
                 {"subscriber", subscribe},
                 {"server", serve},
                 {"client", call},
                 {"pong", serve},
                 {"ping", call},
                 {"action_server", serve_goals},
                 {"action_client", perform},
                 {"source", publish},
                 {"relay", relay},
                 {"sink", subscribe}});
}
