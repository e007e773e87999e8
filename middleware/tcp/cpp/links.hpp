// The streams of senders and listeners, and their READY.
#pragma once

#include <sys/utsname.h>

#include <algorithm>
#include <memory>

#include "stream.hpp"

using Streams = std::vector<std::unique_ptr<Stream>>;
constexpr int kBacklog = 128;

inline sockaddr_in address_of(const std::string& key, const std::string& host, long port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  if (port < 0 || port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    throw wattwire::BadSpec(key, host + ":" + std::to_string(port), "an IPv4 address and a port");
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

inline std::unique_ptr<Stream> connect_to(const Kit& kit, const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  const long port =
      colon == std::string::npos ? -1 : std::strtol(&endpoint[colon + 1], nullptr, 10);
  const sockaddr_in address = address_of("peers.endpoints", endpoint.substr(0, colon), port);
  const int opened = open_socket(kit);
  // SO_SNDTIMEO also limits connect (socket(7)).
  const int64_t limit_ms = kit.integer("ready_timeout_ms");
  timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000 + 1};
  setsockopt(opened, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(opened, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw MiddlewareFailed("connect " + endpoint + ": " + std::strerror(errno));
  return std::make_unique<Stream>(kit, opened);
}

// Returns a stream to each entry of peers.endpoints, in the same order.
inline Streams connect_all(const Kit& kit) {
  const auto endpoints = kit.strings("peers.endpoints");
  const int64_t peers = std::max<int64_t>(1, kit.integer("peers.count"));
  if (static_cast<int64_t>(endpoints.size()) < peers)
    throw wattwire::BadSpec("peers.endpoints", std::to_string(endpoints.size()) + " entries",
                            "at least " + std::to_string(peers) + " HOST:PORT");
  Streams streams;
  for (const auto& endpoint : endpoints) streams.push_back(connect_to(kit, endpoint));
  return streams;
}

// Opens a client's connection for replies. The port of the connection for requests tells the server
// to which of its connections this one belongs.
inline std::unique_ptr<Stream> connect_replies(const Kit& kit, const Stream& requests) {
  auto replies = connect_to(kit, kit.strings("peers.endpoints")[0]);
  replies->send(kAttach, end_of(requests.descriptor(), getsockname).second, {});
  const auto attached = replies->receive(kit.integer("ready_timeout_ms") * 1000000);
  if (!attached || attached->kind != kAttach)
    throw MiddlewareFailed("the server did not accept a second connection for replies");
  return replies;
}

// Returns the address on which this node listens: the setting, or the host's if it is empty.
inline const std::string& listen_address(const Kit& kit) {
  const std::string& setting = kit.string("settings.bind_address");
  return setting.empty() ? kit.string("host.address") : setting;
}

// A listening socket and the streams that it accepted.
class Listener {
 public:
  explicit Listener(Kit& kit) : kit_(kit), socket_(open_socket(kit)) {
    const std::string& host = listen_address(kit);
    sockaddr_in address = address_of("settings.bind_address", host, 0);
    socklen_t bytes = sizeof address;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
        ::listen(socket_, kBacklog) != 0)
      throw MiddlewareFailed("listen on " + host + ": " + std::strerror(errno));
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes);
    kit.listening({host + ":" + std::to_string(ntohs(address.sin_port))});
  }
  ~Listener() { close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int descriptor() const { return socket_; }
  int64_t accepted() const { return accepted_; }

  // Waits for arrivals, accepts connections, and passes every complete frame to `handle`.
  template <class Handle>
  void poll(int64_t timeout_ns, Handle handle) {
    waited_.assign(1, {socket_, POLLIN, 0});
    for (const auto& stream : streams_) waited_.push_back({stream->descriptor(), POLLIN, 0});
    timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (ppoll(waited_.data(), waited_.size(), &timeout, nullptr) <= 0) return;
    bool left = false;
    for (size_t at = 1; at < waited_.size(); ++at) {
      if (waited_[at].revents == 0) continue;
      Stream& stream = *streams_[at - 1];
      stream.read();
      while (auto frame = stream.take()) {
        handle(stream, *frame);
        if (!stream.open()) break;
      }
      left = left || !stream.open();
    }
    if (left)
      streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                    [](const auto& stream) { return !stream->open(); }),
                     streams_.end());
    if (waited_[0].revents != 0) accept_one();
  }

 private:
  void accept_one() {
    int opened = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (opened < 0) return;  // the peer has already left
    streams_.push_back(std::make_shared<Stream>(kit_, opened));
    ++accepted_;
  }

  const Kit& kit_;
  const int socket_;
  int64_t accepted_ = 0;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<pollfd> waited_;
};

inline int option(int socket, int level, int name) {
  int value = 0;
  socklen_t bytes = sizeof value;
  getsockopt(socket, level, name, &value, &bytes);
  return value;
}

// Prints READY with the effective options of `socket`.
inline void ready(Kit& kit, int socket, int64_t matched, int64_t discovery_ns) {
  wattwire::Ready ready;
  ready.effective["tcp_nodelay"] = option(socket, IPPROTO_TCP, TCP_NODELAY) != 0;
  ready.effective["receive_buffer_bytes"] = option(socket, SOL_SOCKET, SO_RCVBUF);
  ready.effective["send_buffer_bytes"] = option(socket, SOL_SOCKET, SO_SNDBUF);
  ready.effective["bind_address"] = listen_address(kit);
  ready.effective["segment_bytes"] = option(socket, IPPROTO_TCP, TCP_MAXSEG);
  ready.effective["transport"] = "tcp/ipv4";
  utsname system = {};
  uname(&system);
  ready.library = {"socket", system.release, "gcc " __VERSION__};
  ready.guarantee = {"reliable", "per_sender", "block"};
  ready.matched = matched;
  ready.discovery_ns = discovery_ns;
  kit.ready(ready);
}
