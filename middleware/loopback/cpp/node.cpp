// Loopback node: AF_UNIX datagrams between processes of a host.
#include "action.hpp"
#include "members.hpp"
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
                 {"action_client", goal_client},
                 {"action_server", goal_server},
                 {"source", publish},
                 {"relay", relay},
                 {"sink", subscribe},
                 {"member", member}});
}
