// The timeout of a socket's blocking reads, for cells that read sockets without a library.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>

namespace wattwire {

// The timeout of one socket's blocking reads. A new socket needs a new object.
class ReceiveTimeout {
 public:
  // Sets the timeout of the next reads, rounded up to at most 1 ms more. Makes a system call only
  // if the timeout changes.
  void set(int socket, int64_t timeout_ns) {
    const int64_t timeout_ms = timeout_ns / 1000000 + 1;
    if (timeout_ms == timeout_ms_) return;
    const timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    timeout_ms_ = timeout_ms;
  }

 private:
  int64_t timeout_ms_ = 0;  // 0: not set
};

}  // namespace wattwire
