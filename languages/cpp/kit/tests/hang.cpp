// A node that receives one message and hangs after STOP, as in the shutdown of a library:
// `hang --spec SPEC --out OUT`.
#include "wattwire/kit.hpp"

using namespace wattwire;

int main(int argc, char** argv) {
  run(argc, argv, {{"subscriber", [](Kit& kit) {
                      kit.wait_go();
                      Payload payload({128, false, 7, "", false, false}, {2});
                      kit.received(payload.stamp(uint64_t{2} << 48, now_ns()));
                      kit.wait();
                      for (;;) pause();
                    }}});
}
