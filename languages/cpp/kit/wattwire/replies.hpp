// Creates the replies of servers and checks the replies to calls (C-23, C-40).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "encryption.hpp"
#include "payload.hpp"
#include "spec.hpp"

namespace wattwire {

class Replies {
 public:
  explicit Replies(const Spec& spec)
      : echo_(spec.string("reply") == "echo"),
        literal_(spec.string("reply") == "literal"),
        encrypt_(spec.string("reply") == "encrypt"),
        full_(spec.string("verify") == "full"),
        record_(spec.string("payload.encoding") == "record"),
        ack_bytes_(spec.string("payload.encoding") == "text" ? 16 : 8),
        literal_text_(spec.string("reply.literal")) {
    if (literal_) answer_.name = literal_text_;
    if (encrypt_)
      encrypted_ = encrypted_reply(static_cast<uint64_t>(spec.integer("payload.seed")),
                                   static_cast<size_t>(spec.integer("payload.bytes")));
  }

  Bytes reply_to(Bytes request) const {
    if (echo_) return request;
    if (encrypt_) {
      thread_local std::vector<uint8_t> reply;  // valid until this thread's next reply
      reply.assign(request.data, request.data + request.size);
      encrypt_blocks(reply.data(), reply.size());
      return Bytes(reply.data(), reply.size());
    }
    if (request.record != nullptr) {
      thread_local Record reply;  // valid until this thread's next reply
      reply = answer_;
      if (literal_) return reply;
      reply.seq = request.record->seq;
      reply.send_ns = request.record->send_ns;
      reply.trailer_seq = request.record->trailer_seq;
      return reply;
    }
    return literal_ ? Bytes(literal_text_) : request.part(0, ack_bytes_);
  }

  // Returns whether this may be the reply to the request `seq`; true if it cannot be decided.
  bool may_be(uint64_t seq, Bytes reply, const Payload& payload) const {
    if (!payload.carries_seq || literal_ || reply.is_unreadable()) return true;
    if (reply.record != nullptr) return reply.record->seq == seq;
    return reply.part(0, ack_bytes_) == payload.header(seq).bytes();
  }

  // Returns whether this is the correct reply to the request `seq`.
  bool is_right(uint64_t seq, Bytes reply, Payload* payload) const {
    if (echo_ && payload->carries_seq) {
      const Checked arrival = payload->check(reply);
      return arrival.verdict == Verdict::kOk && arrival.seq == seq;
    }
    if (encrypt_) return is_encrypted(seq, reply);
    if (record_)
      return reply.record != nullptr && !reply.is_unreadable() && is_answer(seq, *reply.record);
    if (literal_) return reply == Bytes(literal_text_);
    // A payload without a complete sequence has no send time, so all its bytes are known.
    const EncodedSequence header = payload->header(seq);
    const Bytes sent = payload->literal.empty() ? header.bytes().part(0, payload->length)
                                                : Bytes(payload->literal);
    return reply == (echo_ ? sent : sent.part(0, ack_bytes_));
  }

 private:
  // Ignores the send time, as for an echo. Without `verify = full`, the first fill word and the
  // first block represent the fill.
  bool is_encrypted(uint64_t seq, Bytes reply) const {
    const size_t size = encrypted_.size(), fill_end = size - kTrailerBytes;
    if (reply.size != size || std::memcmp(reply.data, &seq, sizeof seq) != 0 ||
        std::memcmp(reply.data + fill_end, &seq, sizeof seq) != 0)
      return false;
    auto equal = [&](size_t from, size_t to) {
      return std::memcmp(reply.data + from, &encrypted_[from], to - from) == 0;
    };
    if (full_) return equal(kKeyAt, fill_end);
    return equal(kKeyAt, kKeyAt + 8) &&
           equal(kBlocksAt, std::min(kBlocksAt + Aes128::kBlockBytes, fill_end));
  }

  bool is_answer(uint64_t seq, const Record& reply) const {
    const uint64_t expected = literal_ ? 0 : seq;
    // Ignores the send time of an ack, as for an echo, because the next call overwrites it.
    return reply.seq == expected && reply.trailer_seq == expected &&
           (!literal_ || reply.send_ns == 0) && reply.same_body(answer_);
  }

  const bool echo_, literal_, encrypt_, full_, record_;
  const size_t ack_bytes_;
  const std::string literal_text_;
  std::vector<uint8_t> encrypted_;  // the reply with sequences of 0, if the reply is encrypted
  Record answer_;                   // for `ack` and `literal`, without sequence and send time
};

}  // namespace wattwire
