// Runs functions of the C++ kit, one per line of input. Byte strings are hexadecimal; "-" is the
// empty string.
//   clock                                               -> now in ns
//   payload SEED SEQ BEGIN_NS ENCODING BYTES            -> hexadecimal payload
//   check SEED ENCODING BYTES NODE VERIFY HEX [HEX ...] -> verdict and sequence of each arrival
//   record SEED SEQ BEGIN_NS BYTES                      -> the record as JSON
//   check-record SEED BYTES NODE VERIFY HEX             -> verdict and sequence
//   samples PATH ROLE NODE SEED CAPACITY NUMBERS        -> writes the file; recorded, overflow
//   spec PATH                                           -> "ok", or the rejected key
#include <iostream>

#include "wattwire/kit.hpp"
#include "wattwire/record_json.hpp"

using namespace wattwire;

static std::string from_hex(const std::string& digits) {
  std::string out;
  for (size_t at = 0; digits != "-" && at + 1 < digits.size(); at += 2)
    out += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  return out;
}

static std::string to_hex(Bytes bytes) {
  std::string out(2 * bytes.size, '\0');
  write_hex(bytes.data, bytes.size, reinterpret_cast<uint8_t*>(out.data()));
  return out;
}

static std::string verdict(const Checked& checked) {
  static const char* const kNames[] = {"ok", "corrupt", "foreign"};
  return std::string(kNames[static_cast<int>(checked.verdict)]) + " " +
         (checked.seq ? std::to_string(*checked.seq) : "-");
}

static void payload(std::istream& in) {
  uint64_t seed, seq;
  int64_t begin_ns;
  std::string encoding;
  size_t bytes;
  in >> seed >> seq >> begin_ns >> encoding >> bytes;
  Payload message({bytes, encoding == "text", seed, "", true}, {static_cast<int64_t>(seq >> 48)});
  message.stamp(1, 2);  // the second stamp must overwrite all bytes of the first
  std::cout << to_hex(message.stamp(seq, begin_ns)) << "\n";
}

static void check(std::istream& in) {
  uint64_t seed;
  std::string encoding, verify, hex;
  size_t bytes;
  int64_t node;
  in >> seed >> encoding >> bytes >> node >> verify;
  Payload message({bytes, encoding == "text", seed, "", verify == "full"}, {node});
  std::string answer;
  while (in >> hex) {
    std::string data = from_hex(hex);
    answer += (answer.empty() ? "" : " ") + verdict(message.check(data));
  }
  std::cout << answer << "\n";
}

static void record(std::istream& in) {
  uint64_t seed, seq;
  int64_t begin_ns;
  size_t bytes;
  in >> seed >> seq >> begin_ns >> bytes;
  Payload message({bytes, false, seed, "", true, true}, {static_cast<int64_t>(seq >> 48)});
  message.stamp(1, 2);
  std::cout << to_json(*message.stamp(seq, begin_ns).record) << "\n";
}

static void check_record(std::istream& in) {
  uint64_t seed;
  std::string verify, hex;
  size_t bytes;
  int64_t node;
  in >> seed >> bytes >> node >> verify >> hex;
  Payload message({bytes, false, seed, "", verify == "full", true}, {node});
  std::optional<Record> read = record_from_json(from_hex(hex));
  std::cout << verdict(message.check(read ? Bytes(*read) : Bytes::unreadable())) << "\n";
}

static void samples(std::istream& in) {
  std::string path;
  unsigned role, node;
  uint64_t seed, seq;
  size_t capacity;
  in >> path >> role >> node >> seed >> capacity;
  Recorder recorder(capacity);
  int64_t intended_ns, begin_ns, end_ns;
  unsigned bytes, peer, kind, flags;
  while (in >> seq >> intended_ns >> begin_ns >> end_ns >> bytes >> peer >> kind >> flags)
    recorder.add({seq, intended_ns, begin_ns, end_ns, bytes, static_cast<uint16_t>(peer),
                  static_cast<uint8_t>(kind), static_cast<uint8_t>(flags)});
  recorder.write(path, static_cast<uint8_t>(role), static_cast<uint16_t>(node), seed);
  std::cout << recorder.recorded() << " " << recorder.overflow() << "\n";
}

static void spec(std::istream& in) {
  std::string path;
  in >> path;
  try {
    Spec read(path);
    std::cout << "ok\n";
  } catch (const BadSpec& error) {
    std::cout << error.key << "\n";
  }
}

int main() {
  for (std::string line, command; std::getline(std::cin, line);) {
    std::istringstream in(line);
    in >> command;
    if (command == "clock") std::cout << now_ns() << "\n";
    if (command == "payload") payload(in);
    if (command == "check") check(in);
    if (command == "record") record(in);
    if (command == "check-record") check_record(in);
    if (command == "samples") samples(in);
    if (command == "spec") spec(in);
  }
}
