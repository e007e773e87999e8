// The gateway library: sends a message to the device in pieces and joins the answers.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "addresses.hpp"
#include "device/protocol.h"
#include "wattwire/receive_timeout.hpp"

namespace coproc {

using wattwire::Bytes;
using wattwire::now_ns;

class Exchange {
 public:
  Exchange(const std::string& host, const Address& device, size_t piece_bytes, size_t in_flight)
      : socket_(host), piece_bytes_(piece_bytes), in_flight_(in_flight), buffer_(65536) {
    socket_.connect_to(device);
  }

  // Sends a message and returns the device's reply, or nullopt at the deadline. The reply is valid
  // until the next call. Throws MiddlewareFailed if the device answers a piece twice.
  std::optional<Bytes> call(operation task, Bytes request, int64_t deadline_ns) {
    ++call_;
    reply_.resize(request.size);
    ticks_ = blocks_ = 0;
    const size_t pieces = request.size == 0 ? 1 : (request.size - 1) / piece_bytes_ + 1;
    answered_.assign(pieces, false);
    size_t sent = 0, arrived = 0;
    while (arrived < pieces) {
      while (sent < pieces && sent - arrived < in_flight_) send(task, request, sent++);
      const int64_t left_ns = deadline_ns - now_ns();
      if (left_ns <= 0) {
        unanswered_.insert(call_);
        return std::nullopt;
      }
      receive_timeout_.set(socket_.descriptor(), left_ns);
      arrived += receive(task, 0);
    }
    return Bytes(reply_.data(), reply_.size());
  }

  // Reads late answers without waiting, and throws as `call` does.
  void drain() {
    while (receive(OPERATION_ECHO, MSG_DONTWAIT) != kNone) {
    }
  }

  // Returns the device's description, or "" at the deadline.
  std::string description(int64_t deadline_ns) {
    if (!call(OPERATION_DESCRIBE, Bytes("", 0), deadline_ns)) return "";
    return description_;
  }

  uint64_t ticks() const { return ticks_; }    // while the device encrypted the last message
  uint64_t blocks() const { return blocks_; }  // that the device encrypted in the last message
  uint32_t ticks_per_second() const { return ticks_per_second_; }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  void send(operation task, Bytes request, size_t number) {
    const size_t offset = number * piece_bytes_;
    Bytes data = request.part(offset, piece_bytes_);
    piece head = {
        task, call_, static_cast<uint32_t>(offset), static_cast<uint32_t>(request.size), {{}}};
    if (task == OPERATION_ENCRYPT)
      std::memcpy(head.key, request.data + BLOCKS_AT - KEY_BYTES, KEY_BYTES);
    const iovec parts[] = {{&head, sizeof head}, {const_cast<uint8_t*>(data.data), data.size}};
    if (writev(socket_.descriptor(), parts, data.size == 0 ? 1 : 2) < 0 && errno != ECONNREFUSED)
      throw wattwire::SendFailed(std::strerror(errno));
  }

  // Reads a datagram. Returns the number of pieces of the open call that it answers, or kNone if
  // there is no datagram and the flags do not wait.
  size_t receive(operation task, int flags) {
    const ssize_t size = recv(socket_.descriptor(), buffer_.data(), buffer_.size(), flags);
    if (size < 0) return flags == 0 || errno == ECONNREFUSED ? 0 : kNone;
    piece head;
    if (static_cast<size_t>(size) < sizeof head) return 0;
    std::memcpy(&head, buffer_.data(), sizeof head);
    const auto data_bytes = static_cast<size_t>(size) - sizeof head;
    if (head.call != call_) {
      if (unanswered_.count(head.call) == 0) answered_twice(head);
      return 0;
    }
    const size_t number = head.offset / piece_bytes_;
    if (head.operation != task || head.offset % piece_bytes_ != 0 || number >= answered_.size())
      return 0;
    if (answered_[number]) answered_twice(head);
    if (task == OPERATION_DESCRIBE) {
      description_.assign(buffer_.begin() + sizeof head, buffer_.begin() + size);
    } else {
      // A shorter or longer answer than its piece is the device's fault, which the kit detects in
      // the reply.
      const size_t room = std::min(piece_bytes_, reply_.size() - head.offset);
      std::fill_n(reply_.begin() + head.offset, room, uint8_t{0});
      std::copy_n(buffer_.begin() + sizeof head, std::min(room, data_bytes),
                  reply_.begin() + head.offset);
    }
    answered_[number] = true;
    ticks_ += head.work.ticks;
    blocks_ += head.work.blocks;
    ticks_per_second_ = head.work.ticks_per_second;
    return 1;
  }

  [[noreturn]] static void answered_twice(const piece& head) {
    throw wattwire::MiddlewareFailed("the device answered call " + std::to_string(head.call) +
                                     " twice at byte " + std::to_string(head.offset) +
                                     "; allowed: one answer per piece; repair the device");
  }

  Socket socket_;
  wattwire::ReceiveTimeout receive_timeout_;
  const size_t piece_bytes_, in_flight_;
  std::vector<uint8_t> buffer_, reply_;
  std::vector<bool> answered_;
  std::set<uint32_t> unanswered_;  // calls whose answers may still arrive
  std::string description_;
  uint32_t call_ = 0, ticks_per_second_ = 0;
  uint64_t ticks_ = 0, blocks_ = 0;
};

}  // namespace coproc
