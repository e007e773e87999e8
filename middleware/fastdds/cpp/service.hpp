// Service and pingpong patterns: a topic for requests and a topic for replies, matched by number.
// Every client reads all replies and drops those of others, as usual for calls over DDS.

#pragma once

#include <map>
#include <optional>

#include "participant.hpp"

inline void serve(wattwire::Kit& kit) {
  Message reply;
  Participant participant(kit, Frame::kCall);
  participant.open_writer("reply");
  participant.open_reader("request");
  participant.receive_all([&](const Message& request) {
    const std::optional<Bytes> data = kit.serve(request.body);
    if (!data) return;
    reply.client = request.client;
    reply.number = request.number;
    reply.body = *data;
    if (participant.send(reply)) kit.served();
  });
}

// A client. It numbers its requests from 1, and a reply carries the number of its request. A call
// blocks, so the client always waits in a wait set.
class Client {
 public:
  explicit Client(wattwire::Kit& kit) : kit_(kit), participant_(kit, Frame::kCall) {
    request_.client = static_cast<uint32_t>(kit.integer("node"));
    participant_.open_writer("request");
    participant_.open_reader("reply");
    participant_.attach();
    participant_.ready();
  }

  std::optional<Bytes> call(Bytes buffer, int64_t timeout_ns) {
    const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
    send(buffer);
    bool has_reply = false;
    for (int64_t left_ns; !has_reply && (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
      take(left_ns, [&](const Message& reply) {
        if (reply.number != request_.number) return;
        has_reply = true;
        reply_.assign(reply.body.data, reply.body.data + reply.body.size);
      });
    }
    if (!has_reply) return std::nullopt;
    return Bytes(reply_.data(), reply_.size());
  }

  void begin(wattwire::Slot* slot, Bytes buffer) {
    send(buffer);
    open_[request_.number] = slot;
  }

  void poll(int64_t timeout_ns) {
    take(timeout_ns, [&](const Message& reply) {
      const auto slot = open_.find(reply.number);
      if (slot == open_.end()) return;
      kit_.complete(slot->second, reply.body);
      open_.erase(slot);
    });
  }

 private:
  void send(Bytes buffer) {
    ++request_.number;
    request_.body = buffer;
    if (!participant_.send(request_)) throw wattwire::SendFailed("the writer took no message");
  }

  template <class Callback>
  void take(int64_t timeout_ns, Callback callback) {
    participant_.wait_and_take(timeout_ns, [&](const Message& reply) {
      if (reply.client == request_.client) callback(reply);
    });
  }

  wattwire::Kit& kit_;
  Participant participant_;
  Message request_;
  std::map<uint64_t, wattwire::Slot*> open_;
  std::vector<uint8_t> reply_;  // an arrival's memory is reused before the caller has its reply
};

inline void call(wattwire::Kit& kit) {
  Client client(kit);
  if (kit.string("loop") == "open" && kit.integer("outstanding_max") > 1)
    kit.drive([&](wattwire::Slot* slot, Bytes buffer) { client.begin(slot, buffer); },
              [&](int64_t timeout_ns) { client.poll(timeout_ns); });
  else
    kit.call_all([&](Bytes buffer, int64_t timeout_ns) { return client.call(buffer, timeout_ns); });
}
