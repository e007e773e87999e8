// Restricts this process's sockets to one interface.

#pragma once

#include <dirent.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>

// Restricts this process's UDP sockets to datagrams of one interface, if the process may do so. The
// library binds its receiving sockets to all addresses, regardless of the configured interface.
inline void stay_on(const std::string& interface) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const int handle = std::atoi(entry->d_name);
    int family = 0, type = 0;
    socklen_t bytes = sizeof family;
    if (getsockopt(handle, SOL_SOCKET, SO_DOMAIN, &family, &bytes) != 0) continue;
    if (getsockopt(handle, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) continue;
    if (family == AF_INET && type == SOCK_DGRAM)
      setsockopt(handle, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                 static_cast<socklen_t>(interface.size() + 1));
  }
  closedir(folder);
}
