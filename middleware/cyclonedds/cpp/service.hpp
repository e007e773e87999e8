// Service and pingpong patterns: a topic for requests and a topic for replies, matched by number.
// Every client reads all replies and drops those of others, as usual for calls over DDS.

#pragma once

#include <map>
#include <optional>
#include <string>

#include "messages.hpp"
#include "participant.hpp"

inline void serve(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) {
    using Call = typename decltype(type)::Call;
    Participant participant(kit);
    const dds_entity_t replies = participant.writer("reply", type.call());
    participant.reader("request", type.call());
    participant.await_matched();
    participant.ready();
    kit.poll([&](int64_t timeout_ns) {
      participant.take<Call>(timeout_ns, [&](const Call& request) {
        const std::optional<Bytes> data = kit.serve(type.view(request.body));
        if (!data) return;
        Call reply;
        reply.call = request.call;
        type.assign(reply.body, *data);
        if (dds_write(replies, &reply) == DDS_RETCODE_OK) kit.served();
      });
    });
  });
}

// A client. It numbers its requests from 1, and a reply carries the number of its request.
template <class Type>
class Client {
 public:
  Client(wattwire::Kit& kit, Type type)
      : kit_(kit), type_(type), participant_(kit), own_(kit.integer("node")) {
    requests_ = participant_.writer("request", type_.call());
    participant_.reader("reply", type_.call());
    participant_.await_matched();
    participant_.ready();
  }

  std::optional<Bytes> call(Bytes buffer, int64_t timeout_ns) {
    const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
    const uint64_t awaited = send(buffer);
    bool has_reply = false;
    for (int64_t left_ns; !has_reply && (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
      take(left_ns, [&](const Call& reply) {
        if (reply.call.number != awaited) return;
        has_reply = true;
        keep(type_.view(reply.body));
      });
    }
    if (!has_reply) return std::nullopt;
    return reply_;
  }

  void begin(wattwire::Slot* slot, Bytes buffer) { open_[send(buffer)] = slot; }

  void poll(int64_t timeout_ns) {
    take(timeout_ns, [&](const Call& reply) {
      const auto slot = open_.find(reply.call.number);
      if (slot == open_.end()) return;
      kit_.complete(slot->second, type_.view(reply.body));
      open_.erase(slot);
    });
  }

 private:
  using Call = typename Type::Call;

  uint64_t send(Bytes buffer) {
    Call request;
    request.call = {static_cast<uint32_t>(own_), ++number_};
    type_.assign(request.body, buffer);
    const dds_return_t result = dds_write(requests_, &request);
    if (result != DDS_RETCODE_OK) throw wattwire::SendFailed(dds_strretcode(-result));
    return number_;
  }

  template <class Take>
  void take(int64_t timeout_ns, Take take_one) {
    participant_.template take<Call>(timeout_ns, [&](const Call& reply) {
      if (reply.call.client == own_) take_one(reply);
    });
  }

  // Copies the reply, because the loan ends before the caller reads it. The view of a record is
  // already a copy.
  void keep(Bytes reply) {
    reply_ = reply;
    if (reply.record != nullptr) return;
    copy_.assign(reply.data, reply.data + reply.size);
    reply_ = Bytes(copy_.data(), copy_.size());
  }

  wattwire::Kit& kit_;
  Type type_;
  Participant participant_;
  const int64_t own_;
  dds_entity_t requests_ = 0;
  uint64_t number_ = 0;
  std::map<uint64_t, wattwire::Slot*> open_;
  std::vector<uint8_t> copy_;
  Bytes reply_;
};

inline void call(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) {
    Client client(kit, type);
    if (kit.string("loop") == "open" && kit.integer("outstanding_max") > 1)
      kit.drive([&](wattwire::Slot* slot, Bytes buffer) { client.begin(slot, buffer); },
                [&](int64_t timeout_ns) { client.poll(timeout_ns); });
    else
      kit.call_all(
          [&](Bytes buffer, int64_t timeout_ns) { return client.call(buffer, timeout_ns); });
  });
}
