// A node without a middleware: its sender sends nothing, its receiver is handed messages.
#include "wattwire/kit.hpp"

namespace {

void ready(wattwire::Kit& kit) {
  wattwire::Ready ready;
  ready.matched = -1;
  ready.library = {"nothing", "1", ""};
  ready.guarantee = {"best_effort", "none", "drop_newest"};
  kit.ready(ready);
}

void publish(wattwire::Kit& kit) {
  ready(kit);
  kit.send_all([](wattwire::Bytes) { return true; });
}

void subscribe(wattwire::Kit& kit) {
  const auto sender = static_cast<uint64_t>(kit.integers("peers.nodes").at(0));
  const auto bytes = static_cast<size_t>(kit.integer("payload.bytes"));
  const auto seed = static_cast<uint64_t>(kit.integer("payload.seed"));
  wattwire::Payload message({bytes, false, seed, "", false}, {static_cast<int64_t>(sender)});
  // Made before the window: making them is not the kit's cost of receiving.
  std::vector<uint8_t> messages;
  const auto arrivals = static_cast<uint64_t>(kit.integer("settings.arrivals"));
  for (uint64_t counter = 0; counter < arrivals; ++counter) {
    const auto made = message.stamp(sender << 48 | counter, wattwire::now_ns());
    messages.insert(messages.end(), made.data, made.data + made.size);
  }
  ready(kit);
  kit.wait_go();
  for (size_t at = 0; at < messages.size(); at += bytes) kit.received({&messages[at], bytes});
  kit.wait_stop();
}

}  // namespace

int main(int argc, char** argv) {
  wattwire::run(argc, argv, {{"publisher", publish}, {"subscriber", subscribe}});
}
