// What a server answers, and which answer of a call is right (C-23).
#pragma once

#include <cstdint>
#include <string>

#include "payload.hpp"
#include "spec.hpp"

namespace wattwire {

class Replies {
 public:
  explicit Replies(const Spec& spec)
      : echo_(spec.string("reply") == "echo"),
        literal_(spec.string("reply") == "literal"),
        record_(spec.string("payload.encoding") == "record"),
        ack_bytes_(spec.string("payload.encoding") == "text" ? 16 : 8),
        literal_text_(spec.string("reply.literal")) {
    if (literal_) answer_.name = literal_text_;
  }

  Bytes reply_to(Bytes request) const {
    if (echo_) return request;
    if (request.record != nullptr) {
      thread_local Record made;  // stays until this thread's next reply
      made = answer_;
      if (literal_) return made;
      made.seq = request.record->seq;
      made.send_ns = request.record->send_ns;
      made.trailer_seq = request.record->trailer_seq;
      return made;
    }
    return literal_ ? Bytes(literal_text_) : request.part(0, ack_bytes_);
  }

  // Whether this may be the reply to the request of that sequence; true where nobody can tell.
  bool may_be(uint64_t seq, Bytes reply, const Payload& payload) const {
    if (!payload.carries_seq || literal_ || reply.is_unreadable()) return true;
    if (reply.record != nullptr) return reply.record->seq == seq;
    return reply.part(0, ack_bytes_) == payload.header(seq).bytes();
  }

  // Whether the request of that sequence is answered with this.
  bool is_right(uint64_t seq, Bytes reply, Payload* payload) const {
    if (echo_ && payload->carries_seq) {
      const Checked seen = payload->check(reply);
      return seen.verdict == Verdict::kOk && seen.seq == seq;
    }
    if (record_)
      return reply.record != nullptr && !reply.is_unreadable() && is_answer(seq, *reply.record);
    if (literal_) return reply == Bytes(literal_text_);
    // Without a whole sequence there is no send time either: all bytes are known.
    const EncodedSequence header = payload->header(seq);
    const Bytes sent = payload->literal.empty() ? header.bytes().part(0, payload->length)
                                                : Bytes(payload->literal);
    return reply == (echo_ ? sent : sent.part(0, ack_bytes_));
  }

 private:
  bool is_answer(uint64_t seq, const Record& reply) const {
    const uint64_t due = literal_ ? 0 : seq;
    // The send time of an ack is not compared, as it is not in an echo: the next call restamps it.
    return reply.seq == due && reply.trailer_seq == due && (!literal_ || reply.send_ns == 0) &&
           reply.same_body(answer_);
  }

  const bool echo_, literal_, record_;
  const size_t ack_bytes_;
  const std::string literal_text_;
  Record answer_;  // of `ack` and `literal`, without sequence and send time
};

}  // namespace wattwire
