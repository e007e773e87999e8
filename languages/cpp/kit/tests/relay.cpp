// Passes arrivals to a relay without a middleware: `relay SPEC OUT {sends|fails HEX}...`, where HEX
// is an arrival (a record: its JSON), and `fails` is a failed send. For each arrival prints `send`
// if the relay must send it, and `keep` otherwise. Then prints DONE and writes the samples to OUT.
#include <fcntl.h>

#include <iostream>

#include "wattwire/kit.hpp"
#include "wattwire/record_json.hpp"

using namespace wattwire;

namespace {

std::string from_hex(const std::string& digits) {
  std::string out;
  for (size_t at = 0; at + 1 < digits.size(); at += 2)
    out += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  return out;
}

void pass(Kit& kit, const std::string& data, bool sends) {
  std::optional<Record> record;
  if (kit.encoding() == "record") record = record_from_json(data);
  const bool unreadable = kit.encoding() == "record" && !record;
  const Bytes arrival = record ? Bytes(*record) : unreadable ? Bytes::unreadable() : Bytes(data);
  const std::optional<Relay> message = kit.relay(arrival);
  std::cout << (message ? "send" : "keep") << std::endl;
  if (message) sends ? kit.relayed(*message) : kit.relay_failed(*message);
}

}  // namespace

int main(int argc, char** argv) {
  int input[2];
  if (argc < 3 || pipe(input) != 0 || dup2(input[0], 0) < 0 || dup2(1, 3) < 0) return 1;
  const Spec spec(argv[1]);
  check_declaration(spec, {{"relay", [](Kit&) {}}});
  Dialogue dialogue;
  Kit kit(spec, &dialogue, now_ns(), argv[2]);
  dialogue.listen();
  const std::string go = "GO " + std::to_string(now_ns() + 200000000) + "\n";
  if (write(input[1], go.data(), go.size()) < 0) return 1;
  sleep_until_ns(kit.wait_go());
  for (int at = 3; at + 1 < argc; at += 2)
    pass(kit, from_hex(argv[at + 1]), std::string(argv[at]) == "sends");
  kit.finish();
  _exit(0);
}
