// Serialises and reads messages with the cell's types, without Fast DDS.
//
// types write bytes|text message|call BODY prints the serialised message as hexadecimal digits.
// types read bytes|text message|call HEX prints the client, the number and the body, or "rejected".
// types allocations prints the number of allocations of 100 messages of 1 kB after the first.

#include "types.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

static long allocations = 0;

void* operator new(size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

static MessageType type_of(const std::string& body, const std::string& frame) {
  return MessageType(body == "text" ? Body::kText : Body::kBytes,
                     frame == "call" ? Frame::kCall : Frame::kMessage);
}

static void write_message(MessageType type, const std::string& body) {
  uint8_t memory[4096];
  Message message;
  message.client = 7;
  message.number = 0x0102030405060708;
  message.body = Bytes(body);
  SerializedPayload_t payload;
  payload.data = memory;
  payload.max_size = type.calculate_serialized_size(&message, 0);
  if (!type.serialize(&message, payload, 0) || payload.length != payload.max_size) std::exit(1);
  for (uint32_t at = 0; at < payload.length; ++at) std::printf("%02x", memory[at]);
}

static void read_message(MessageType type, const std::string& digits) {
  std::vector<uint8_t> memory;
  for (size_t at = 0; at < digits.size(); at += 2)
    memory.push_back(static_cast<uint8_t>(std::stoi(digits.substr(at, 2), nullptr, 16)));
  SerializedPayload_t payload;
  payload.data = memory.data();
  payload.length = payload.max_size = static_cast<uint32_t>(memory.size());
  Message message;
  if (!type.deserialize(payload, &message)) {
    std::printf("rejected");
    return;
  }
  std::printf("%u %llu %s", message.client, static_cast<unsigned long long>(message.number),
              message.body.str().c_str());
}

static void count_allocations() {
  MessageType type(Body::kBytes, Frame::kMessage);
  static uint8_t memory[2048];
  const std::string body(1000, 'x');
  Message message, arrival;
  message.body = Bytes(body);
  SerializedPayload_t payload;
  payload.data = memory;
  payload.max_size = sizeof memory;
  long before = 0;
  for (int turn = 0; turn <= 100; ++turn) {
    if (turn == 1) before = allocations;
    if (!type.serialize(&message, payload, 0) || !type.deserialize(payload, &arrival)) std::exit(1);
  }
  std::printf("%ld", allocations - before);
}

int main(int, char** argv) {
  const std::string action = argv[1];
  if (action == "allocations") count_allocations();
  if (action == "write") write_message(type_of(argv[2], argv[3]), argv[4]);
  if (action == "read") read_message(type_of(argv[2], argv[3]), argv[4]);
}
