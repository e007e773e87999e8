// A UDP socket with its effective options.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "wattwire/kit.hpp"
#include "wattwire/receive_timeout.hpp"

using wattwire::Bytes;
using wattwire::Kit;
using wattwire::now_ns;

using Address = sockaddr_in;

struct Datagram {
  Bytes data;  // valid until the next receive
  Address sender;
};

class Socket {
 public:
  explicit Socket(Kit& kit) : kit_(kit), buffer_(65536) { open(); }
  ~Socket() { close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Binds a sender's socket to a free port of the host's address.
  void bind_sender() {
    Address own = {};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, kit_.string("host.address").c_str(), &own.sin_addr);  // the kit checked it
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      throw wattwire::MiddlewareFailed(std::string("bind to a free port: ") + std::strerror(errno));
  }

  // Binds a new port. Datagrams on their way to the old port are lost.
  void reopen() {
    close(socket_);
    open();
    bind_sender();
  }

  // Binds listen_address and settings.bind_port (0: a free port) and prints LISTENING.
  void listen() {
    const std::string& host = listen_address();
    Address address = {};
    address.sin_family = AF_INET;
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
      throw wattwire::BadSpec("settings.bind_address", host, "an IPv4 address");
    address.sin_port = htons(static_cast<uint16_t>(kit_.integer("settings.bind_port", 0, 65535)));
    socklen_t bytes = sizeof address;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), bytes) != 0)
      throw wattwire::MiddlewareFailed("bind " + host + ": " + std::strerror(errno));
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes);
    kit_.listening({host + ":" + std::to_string(ntohs(address.sin_port))});
  }

  // Prints READY. A datagram socket does not detect its peers, so `matched` is null.
  void ready(int64_t discovery_ns = -1) {
    wattwire::Ready ready;
    ready.effective["receive_buffer_bytes"] = effective_option(SO_RCVBUF);
    ready.effective["send_buffer_bytes"] = effective_option(SO_SNDBUF);
    ready.effective["bind_address"] = listen_address();
    ready.effective["transport"] = "udp/ipv4";
    utsname system = {};
    uname(&system);
    ready.library = {"socket", system.release, "gcc " __VERSION__};
    ready.guarantee = {"best_effort", "none", "drop_newest"};
    ready.discovery_ns = discovery_ns;
    kit_.ready(ready);
  }

  bool send(Bytes data, const Address& to) {
    return sendto(socket_, data.data, data.size, 0, reinterpret_cast<const sockaddr*>(&to),
                  sizeof to) >= 0;
  }

  // Like `receive`, but with a timeout in ns resolution for event loops.
  std::optional<Datagram> receive_until(int64_t timeout_ns) {
    pollfd readable = {socket_, POLLIN, 0};
    timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (ppoll(&readable, 1, &timeout, nullptr) <= 0) return std::nullopt;
    return receive(timeout_ns);
  }

  // Waits for a datagram with a single system call. May exceed the timeout by up to 1 ms.
  std::optional<Datagram> receive(int64_t timeout_ns) {
    receive_timeout_.set(socket_, timeout_ns);
    Datagram datagram = {};
    socklen_t bytes = sizeof datagram.sender;
    ssize_t count = recvfrom(socket_, buffer_.data(), buffer_.size(), 0,
                             reinterpret_cast<sockaddr*>(&datagram.sender), &bytes);
    if (count < 0) return std::nullopt;  // an error of an earlier send is not an arrival
    datagram.data = {buffer_.data(), static_cast<size_t>(count)};
    return datagram;
  }

 private:
  // Returns the address on which this node listens: the setting, or the host's if it is empty.
  const std::string& listen_address() const {
    const std::string& setting = kit_.string("settings.bind_address");
    return setting.empty() ? kit_.string("host.address") : setting;
  }

  void open() {
    socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    receive_timeout_ = {};
    if (socket_ < 0) throw wattwire::MiddlewareFailed(std::string("socket: ") + strerror(errno));
    for (auto [key, option] : {std::pair("settings.receive_buffer_bytes", SO_RCVBUF),
                               std::pair("settings.send_buffer_bytes", SO_SNDBUF)}) {
      int bytes = static_cast<int>(kit_.integer(key, 0, (1 << 30) - 1));
      if (bytes != 0) setsockopt(socket_, SOL_SOCKET, option, &bytes, sizeof bytes);
    }
  }
  int effective_option(int option) const {
    int value = 0;
    socklen_t bytes = sizeof value;
    getsockopt(socket_, SOL_SOCKET, option, &value, &bytes);
    return value;
  }

  Kit& kit_;
  int socket_ = -1;
  wattwire::ReceiveTimeout receive_timeout_;
  std::vector<uint8_t> buffer_;
};

// Returns the addresses of the endpoints, which are the value of `key`.
inline std::vector<Address> addresses_of(const std::string& key, const wattwire::Names& endpoints) {
  std::vector<Address> out;
  for (const auto& endpoint : endpoints) {
    size_t colon = endpoint.rfind(':');
    Address address = {};
    address.sin_family = AF_INET;
    long port = colon == std::string::npos ? 0 : std::strtol(&endpoint[colon + 1], nullptr, 10);
    if (port < 1 || port > 65535 ||
        inet_pton(AF_INET, endpoint.substr(0, colon).c_str(), &address.sin_addr) != 1)
      throw wattwire::BadSpec(key, endpoint, "IPv4-ADDRESS:PORT");
    address.sin_port = htons(static_cast<uint16_t>(port));
    out.push_back(address);
  }
  if (out.empty()) throw wattwire::BadSpec(key, "[]", "at least one IPv4-ADDRESS:PORT");
  return out;
}

// Returns the destinations of a sender: settings.endpoint_override, or peers.endpoints.
inline std::vector<Address> peer_addresses(const Kit& kit) {
  wattwire::Names endpoints;
  std::stringstream listed(kit.string("settings.endpoint_override"));
  for (std::string item; std::getline(listed, item, ',');) endpoints.push_back(item);
  if (!endpoints.empty()) return addresses_of("settings.endpoint_override", endpoints);
  return addresses_of("peers.endpoints", kit.strings("peers.endpoints"));
}
