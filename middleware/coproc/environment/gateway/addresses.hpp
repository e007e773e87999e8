// IPv4 sockets of the gateway, all bound to the address of the node's host (C-38).
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "wattwire/kit.hpp"

namespace coproc {

using Address = sockaddr_in;

// Returns an IPv4 address, or throws BadSpec with the key.
inline Address address_of(const std::string& key, const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  Address address = {};
  address.sin_family = AF_INET;
  const long port = colon == std::string::npos ? 0 : std::atol(endpoint.c_str() + colon + 1);
  if (port < 1 || port > 65535 ||
      inet_pton(AF_INET, endpoint.substr(0, colon).c_str(), &address.sin_addr) != 1)
    throw wattwire::BadSpec(key, endpoint, "IPv4-ADDRESS:PORT");
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

inline std::string text_of(const Address& address) {
  char host[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(address.sin_port));
}

// A UDP socket on a free port of an address.
class Socket {
 public:
  explicit Socket(const std::string& host) {
    opened_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    Address own = {};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, host.c_str(), &own.sin_addr);  // the kit checked it
    if (opened_ < 0 || bind(opened_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)
      fail(host);
  }
  ~Socket() { close(opened_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return opened_; }

  Address address() const {
    Address own = {};
    socklen_t bytes = sizeof own;
    getsockname(opened_, reinterpret_cast<sockaddr*>(&own), &bytes);
    return own;
  }

  void connect_to(const Address& peer) {
    if (connect(opened_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0)
      fail(text_of(peer));
  }

 private:
  [[noreturn]] static void fail(const std::string& where) {
    throw wattwire::MiddlewareFailed("UDP socket, " + where + ": " + std::strerror(errno));
  }

  int opened_ = -1;
};

}  // namespace coproc
