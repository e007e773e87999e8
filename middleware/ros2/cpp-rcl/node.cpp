// The ROS 2 cell on the rcl C API, on which rclcpp and rclpy are built.

#include "action_client.hpp"
#include "action_server.hpp"
#include "client.hpp"
#include "members.hpp"
#include "server.hpp"
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
                 {"sink", subscribe},
                 {"member", member}});
}
