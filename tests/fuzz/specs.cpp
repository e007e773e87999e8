// Reads specifications as test_fuzz.py sends them, each a line of its length in bytes and then the
// text, and answers with a line each: "ok" and some values, or the key that is refused.
#include <iostream>

#include "wattwire/kit.hpp"

int main() {
  const std::map<std::string, wattwire::Rule> settings = {
      {"drop_every", wattwire::integer(0, INT32_MAX)},
      {"die_at", wattwire::one_of({"none", "window"})},
      {"drop_counters", wattwire::string()},
      {"nodelay", wattwire::boolean()}};
  std::string text;
  for (size_t bytes; std::cin >> bytes;) {
    std::cin.get();
    text.resize(bytes);
    std::cin.read(text.data(), static_cast<std::streamsize>(bytes));
    try {
      wattwire::Spec spec(text, "fuzz", settings);
      std::cout << "ok " << spec.integer("period_ns") << " " << spec.integer("payload.seed") << " "
                << spec.integers("peers.nodes").size() << " "
                << wattwire::to_hex(spec.string("payload.literal")) << "\n";
    } catch (const wattwire::BadSpec& error) {
      std::cout << "bad " << wattwire::to_hex(error.key) << "\n";
    }
    std::cout.flush();
  }
}
