// Common code of all roles: the socket, frames, planted faults and the timer.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wattwire/kit.hpp"
#include "wattwire/record_json.hpp"

using wattwire::Bytes;
using wattwire::Kit;
using wattwire::MiddlewareFailed;
using wattwire::now_ns;
using wattwire::SendFailed;
using wattwire::Slot;

// A frame consists of its kind, the number of its call, and the payload.
enum FrameKind : uint8_t { kMessage, kRequest, kReply, kGoal, kAccept, kFeedback, kResult };
constexpr size_t kHeadBytes = 9;
constexpr int64_t kFaultMessage = 4;

struct Address {
  sockaddr_un name = {};
  socklen_t bytes = 0;

  // Uses abstract names, so that a killed node leaves no file.
  static Address of(const std::string& name) {
    Address out;
    if (name.size() > sizeof out.name.sun_path - 1)
      throw MiddlewareFailed("@" + name + ": too long for the name of a socket");
    out.name.sun_family = AF_UNIX;
    std::memcpy(out.name.sun_path + 1, name.data(), name.size());
    out.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return out;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

struct Frame {
  uint8_t kind;
  uint64_t number;
  Bytes payload;  // valid until the next receive
  Bytes encoded;  // the payload as it arrived; differs from `payload` for records
  Address sender;
};

class Link {
 public:
  explicit Link(Kit& kit)
      : kit_(kit),
        frame_(262144),
        timeout_ns_(kit.integer("timeout_ns")),
        delay_ns_(1000 * kit.integer("settings.delay_us")),
        drop_every_(static_cast<uint64_t>(kit.integer("settings.drop_every"))),
        duplicate_every_(static_cast<uint64_t>(kit.integer("settings.duplicate_every"))) {
    name_ = "wattwire-" + kit.string("run") + "-" + std::to_string(kit.integer("node"));
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    // The buffer must have room for the longest message. The kernel limits it to net.core.wmem_max.
    int bytes = 212992;
    setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    // Limits the wait for a peer that has stopped reading (C-12).
    timeval limit = {timeout_ns_ / 1000000000, timeout_ns_ % 1000000000 / 1000 + 1};
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    Address address = Address::of(name_);
    if (bind(socket_, address.get(), address.bytes) != 0)
      throw MiddlewareFailed("bind @" + name_ + ": " + std::strerror(errno));
    read_drops();
  }
  ~Link() { close(socket_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Returns the addresses of at least `count` endpoints `@name`, which must be bound.
  std::vector<Address> peers(int64_t count) const {
    std::vector<Address> addresses;
    for (const auto& endpoint : kit_.strings("peers.endpoints")) {
      Address address = Address::of(endpoint.substr(endpoint.rfind('@', 0) == 0 ? 1 : 0));
      const int failed = connect_to(address);
      if (failed != 0) throw MiddlewareFailed("connect " + endpoint + ": " + strerror(failed));
      addresses.push_back(address);
    }
    if (static_cast<int64_t>(addresses.size()) < count)
      throw MiddlewareFailed(std::to_string(addresses.size()) + " endpoints for " +
                             std::to_string(count));
    return addresses;
  }

  void open(bool listening) {
    if (listening) kit_.listening({"@" + name_});
    fault("before_ready");
  }

  void ready(int64_t matched) {
    wattwire::Ready ready = granted();
    ready.matched = matched;
    kit_.ready(ready);
  }

  int descriptor() const { return socket_; }

  // Returns the number of these addresses to which a socket is bound.
  int64_t bound(const std::vector<Address>& addresses) const {
    int64_t count = 0;
    for (const Address& address : addresses) count += connect_to(address) == 0;
    return count;
  }

  // Returns the values in force, without the number of peers.
  wattwire::Ready granted() const {
    wattwire::Ready ready;
    int granted = 0;
    socklen_t bytes = sizeof granted;
    getsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &granted, &bytes);
    ready.effective["send_buffer_bytes"] = granted;
    ready.effective["transport"] = "unix datagram";
    utsname system = {};
    uname(&system);
    ready.library = {"AF_UNIX", system.release, "gcc " __VERSION__};
    bool planted = !drops_.empty() || drop_every_ != 0;
    ready.guarantee = {planted ? "best_effort" : "reliable", "per_sender", "block"};
    return ready;
  }

  // Kills or blocks the process if the settings plant a fault at this stage.
  void fault(const std::string& stage) {
    const std::string& role = kit_.string("settings.fault_role");
    if (role != "any" && role != kit_.string("role")) return;
    if (kit_.string("settings.die_at") == stage) kill(getpid(), SIGKILL);
    while (kit_.string("settings.hang_at") == stage) pause();
  }

  void count_message() {
    if (++messages_ == kFaultMessage) fault("window");
  }

  // Returns the number of transmissions of this counter, which planted faults may change.
  int copies(uint64_t counter) {
    count_message();
    for (int64_t end = now_ns() + delay_ns_; delay_ns_ > 0 && now_ns() < end;)
      wattwire::sleep_until_ns(end);
    if (drops_.count(counter) != 0 || hits(drop_every_, counter)) return 0;
    return hits(duplicate_every_, counter) ? 2 : 1;
  }

  // Returns false if the peer has left or its queue stayed full for timeout_ns.
  bool send(uint8_t kind, uint64_t number, Bytes payload, const Address& to, int flags = 0) {
    uint8_t head[kHeadBytes] = {kind};
    std::memcpy(head + 1, &number, 8);
    std::string json;
    if (payload.record != nullptr) payload = json = wattwire::to_json(*payload.record);
    iovec parts[] = {{head, kHeadBytes}, {const_cast<uint8_t*>(payload.data), payload.size}};
    msghdr message = {};
    message.msg_name = const_cast<sockaddr*>(to.get());
    message.msg_namelen = to.bytes;
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    return sendmsg(socket_, &message, flags) >= 0;
  }

  // Sends without blocking, because two nodes that wait for each other's queues would deadlock.
  template <class Poll>
  bool send_patiently(uint8_t kind, uint64_t number, Bytes payload, const Address& to, Poll poll) {
    int64_t deadline = now_ns() + timeout_ns_;
    while (!send(kind, number, payload, to, MSG_DONTWAIT)) {
      if (errno != EAGAIN || now_ns() > deadline) return false;
      poll(int64_t{200000});
    }
    return true;
  }

  std::optional<Frame> receive(int64_t timeout_ns) {
    pollfd readable = {socket_, POLLIN, 0};
    timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (ppoll(&readable, 1, &timeout, nullptr) <= 0) return std::nullopt;
    Frame frame = {};
    frame.sender.bytes = sizeof frame.sender.name;
    ssize_t count = recvfrom(socket_, frame_.data(), frame_.size(), 0,
                             reinterpret_cast<sockaddr*>(&frame.sender.name), &frame.sender.bytes);
    if (count < static_cast<ssize_t>(kHeadBytes)) return std::nullopt;
    frame.kind = frame_[0];
    std::memcpy(&frame.number, &frame_[1], 8);
    frame.payload = frame.encoded = {&frame_[kHeadBytes], static_cast<size_t>(count) - kHeadBytes};
    if (kit_.encoding() == "record") {
      record_ = wattwire::record_from_json(frame.payload.view());
      frame.payload = record_ ? Bytes(*record_) : Bytes::unreadable();
    }
    return frame;
  }

 private:
  // Returns 0 if a socket is bound to the address, otherwise the error of connect.
  static int connect_to(const Address& address) {
    int trial = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int failed = connect(trial, address.get(), address.bytes) == 0 ? 0 : errno;
    close(trial);
    return failed;
  }
  static bool hits(uint64_t every, uint64_t counter) {
    return every != 0 && counter % every == every - 1;
  }
  void read_drops() {
    const char* key = "settings.drop_counters";
    std::stringstream listed(kit_.string(key));
    for (std::string item; std::getline(listed, item, ',');) {
      if (item.empty() || item.find_first_not_of("0123456789") != std::string::npos)
        throw wattwire::BadSpec(key, kit_.string(key), "integers, separated by commas");
      drops_.insert(std::strtoull(item.c_str(), nullptr, 10));
    }
  }

  Kit& kit_;
  std::string name_;
  int socket_;
  int64_t messages_ = 0;
  std::set<uint64_t> drops_;
  std::vector<uint8_t> frame_;
  const int64_t timeout_ns_, delay_ns_;
  const uint64_t drop_every_, duplicate_every_;
  std::optional<wattwire::Record> record_;  // the record of the last frame
};

// The middleware's periodic timer. A late tick does not shift later ticks.
template <class Begin, class Poll>
void drive_native(Kit& kit, Begin begin, Poll poll) {
  kit.wait_timer_birth();
  const int64_t period_ns = kit.period_ns();
  int64_t tick_ns = now_ns() + period_ns;
  while (!kit.finished()) {
    int64_t late_ns = now_ns() - tick_ns;
    if (late_ns < 0) {
      poll(std::min<int64_t>(-late_ns, 100000000));
      continue;
    }
    tick_ns += (1 + late_ns / period_ns) * period_ns;
    Slot* slot = kit.tick();
    if (slot == nullptr) continue;
    try {
      begin(slot, kit.begin(slot));
    } catch (const SendFailed&) {
      kit.fail(slot);
    }
  }
  kit.end_schedule(poll);
}

inline uint64_t counter_of(const Slot* slot) { return slot->seq & wattwire::kCounterMask; }
