// Reads specifications as test_fuzz.py sends them, each a line of its length in bytes and then the
// text, and answers with a line each: "ok" and some values, or the key that is refused.
#include <iostream>

#include "wattwire/kit.hpp"

// A line holds no spaces or line ends that a value may have.
static std::string to_hex(const std::string& text) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

int main() {
  std::string text;
  for (size_t bytes; std::cin >> bytes;) {
    std::cin.get();
    text.resize(bytes);
    std::cin.read(text.data(), static_cast<std::streamsize>(bytes));
    try {
      wattwire::Spec spec(text, "fuzz");
      std::cout << "ok " << spec.integer("period_ns") << " " << spec.integer("payload.seed") << " "
                << spec.integers("peers.nodes").size() << " "
                << to_hex(spec.string("payload.literal")) << "\n";
    } catch (const wattwire::BadSpec& error) {
      std::cout << "bad " << to_hex(error.key) << "\n";
    }
    std::cout.flush();
  }
}
