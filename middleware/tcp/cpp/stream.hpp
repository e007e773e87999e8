// A connection that carries frames. README.md describes the format and the flow control.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wattwire/kit.hpp"
#include "wattwire/receive_timeout.hpp"

using wattwire::Bytes;
using wattwire::Kit;
using wattwire::MiddlewareFailed;
using wattwire::now_ns;
using wattwire::SendFailed;

enum FrameKind : uint8_t { kMessage, kRequest, kReply, kAttach };
constexpr size_t kHeadBytes = 13;
constexpr size_t kPayloadBytesMax = 67108864;
constexpr size_t kReadBytes = 65536;

struct Frame {
  uint8_t kind;
  uint64_t number;
  Bytes payload;  // valid until the next read
};

inline bool wait_for(int socket, short what, int64_t timeout_ns) {
  pollfd waited = {socket, what, 0};
  timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  return ppoll(&waited, 1, &timeout, nullptr) > 0;
}

// Opens a socket with the settings. Buffer sizes must be set before connecting or listening.
inline int open_socket(const Kit& kit) {
  int opened = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (opened < 0) throw MiddlewareFailed(std::string("socket: ") + std::strerror(errno));
  for (auto [key, option] : {std::pair("settings.receive_buffer_bytes", SO_RCVBUF),
                             std::pair("settings.send_buffer_bytes", SO_SNDBUF)}) {
    int bytes = static_cast<int>(kit.integer(key, 0, (1 << 30) - 1));
    if (bytes != 0) setsockopt(opened, SOL_SOCKET, option, &bytes, sizeof bytes);
  }
  int nodelay = kit.boolean("settings.tcp_nodelay") ? 1 : 0;
  setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof nodelay);
  return opened;
}

using End = std::pair<uint32_t, uint16_t>;  // address and port

// Returns one end of a connection.
template <class Get>
End end_of(int socket, Get get) {
  sockaddr_in address = {};
  socklen_t bytes = sizeof address;
  if (get(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return {0, 0};
  return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

// A connection. Reads all available data at once, so that a small frame needs only one system call.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(const Kit& kit, int opened)
      : socket_(opened),
        peer_(end_of(opened, getpeername)),
        two_writes_(kit.integer("settings.writes") == 2),
        quickack_(kit.string("settings.tcp_quickack")),
        last_kind_(kit.integer("settings.connections") == 2 ? kAttach : kReply),
        timeout_ns_(kit.integer("timeout_ns")),
        buffer_(kHeadBytes + kReadBytes) {
    acknowledge();
  }
  ~Stream() { close(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int descriptor() const { return socket_; }
  End peer() const { return peer_; }
  bool open() const { return socket_ >= 0; }
  void close() {
    if (open()) ::close(std::exchange(socket_, -1));
  }

  // Sends a frame. Returns false and closes the stream if the peer has left or if sending takes
  // longer than timeout_ns, because a partial frame breaks the stream. Calls `idle(timeout_ns)`
  // while the kernel's buffer is full, because two nodes that only wait would deadlock.
  template <class Idle>
  bool send(FrameKind kind, uint64_t number, Bytes payload, Idle idle) {
    uint8_t head[kHeadBytes];
    const auto length = static_cast<uint32_t>(payload.size);
    std::memcpy(head, &length, 4);
    head[4] = kind;
    std::memcpy(head + 5, &number, 8);
    iovec parts[] = {{head, kHeadBytes}, {const_cast<uint8_t*>(payload.data), payload.size}};
    bool sent = two_writes_ ? write(parts, 1, idle) && (length == 0 || write(parts + 1, 1, idle))
                            : write(parts, 2, idle);
    if (!sent) close();
    return sent;
  }
  bool send(FrameKind kind, uint64_t number, Bytes payload) {
    return send(kind, number, payload,
                [this](int64_t left_ns) { wait_for(socket_, POLLOUT, left_ns); });
  }

  // Returns the next complete frame, if any.
  std::optional<Frame> take() {
    const size_t have = end_ - begin_;
    if (have < kHeadBytes) return std::nullopt;
    const uint8_t* head = &buffer_[begin_];
    uint32_t length;
    std::memcpy(&length, head, 4);
    if (head[4] > last_kind_ || length > kPayloadBytesMax) {
      close();
      return std::nullopt;
    }
    if (have < kHeadBytes + length) {
      make_room(kHeadBytes + length);
      return std::nullopt;
    }
    Frame frame = {head[4], 0, {head + kHeadBytes, length}};
    std::memcpy(&frame.number, head + 5, 8);
    begin_ += kHeadBytes + length;
    return frame;
  }

  // Reads the available data once. Closes the stream at its end or after an error. Waits for data
  // for the receive timeout if `flags` lacks MSG_DONTWAIT.
  void read(int flags = MSG_DONTWAIT) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ == buffer_.size()) make_room(end_ - begin_ + kReadBytes);
    // The kernel acknowledges in the read unless the option is off.
    if (quickack_ == "off") acknowledge();
    ssize_t count = recv(socket_, &buffer_[end_], buffer_.size() - end_, flags);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return close();
    end_ += static_cast<size_t>(count);
    acknowledge();
  }

  // Waits for the next complete frame, with a single system call per read. Returns nullopt at the
  // timeout, which it may exceed by up to 1 ms, or at the end of the stream.
  std::optional<Frame> receive(int64_t timeout_ns) {
    const int64_t deadline = now_ns() + timeout_ns;
    for (int64_t left = timeout_ns; left > 0; left = deadline - now_ns()) {
      if (auto frame = take()) return frame;
      if (!open()) break;
      receive_timeout_.set(socket_, left);
      read(0);
    }
    return take();
  }

  // Like `receive`, but with a timeout in ns resolution for event loops. A timeout of 0 reads once.
  std::optional<Frame> receive_until(int64_t timeout_ns) {
    const int64_t deadline = now_ns() + timeout_ns;
    for (int64_t left = timeout_ns; left >= 0; left = deadline - now_ns()) {
      if (auto frame = take()) return frame;
      if (!open() || !wait_for(socket_, POLLIN, left)) return std::nullopt;
      read();
    }
    return take();
  }

 private:
  template <class Idle>
  bool write(iovec* parts, size_t count, Idle idle) {
    int64_t deadline = 0;  // from the first time that the kernel's buffer is full
    while (open() && count > 0) {
      msghdr message = {};
      message.msg_iov = parts;
      message.msg_iovlen = count;
      ssize_t taken = sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (taken < 0) {
        if (errno != EAGAIN) return false;
        if (deadline == 0) deadline = now_ns() + timeout_ns_;
        const int64_t left = deadline - now_ns();
        if (left <= 0) return false;
        idle(left);
        continue;
      }
      auto rest = static_cast<size_t>(taken);
      while (count > 0 && rest >= parts->iov_len) {
        rest -= parts->iov_len;
        ++parts;
        --count;
      }
      if (count > 0) {
        parts->iov_base = static_cast<uint8_t*>(parts->iov_base) + rest;
        parts->iov_len -= rest;
      }
    }
    return count == 0;
  }

  // Moves unread bytes to the beginning of the buffer and ensures its size.
  void make_room(size_t bytes_needed) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (bytes_needed > buffer_.size()) buffer_.resize(bytes_needed + kReadBytes);
  }

  void acknowledge() {
    // Linux may leave this mode at any time (tcp(7)), so the node sets it after every read.
    int on = quickack_ == "on" ? 1 : 0;
    if (quickack_ != "default") setsockopt(socket_, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }

  int socket_;
  const End peer_;
  const bool two_writes_;
  const std::string quickack_;
  const uint8_t last_kind_;
  const int64_t timeout_ns_;
  wattwire::ReceiveTimeout receive_timeout_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0, end_ = 0;
};
