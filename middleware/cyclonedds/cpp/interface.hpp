// Restricts this process's sockets to one interface, and reads its multicast groups.

#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

// Multicast group of DDS discovery (DDSI-RTPS, section 9.6.2.4).
inline constexpr char kDiscoveryGroup[] = "239.255.0.1";

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

// Returns whether a process of this network has joined the group of discovery on an interface. The
// library joins no group on an interface without multicast, such as lo, and reports nothing.
inline bool has_joined(const std::string& interface) {
  char wanted[9];
  std::snprintf(wanted, sizeof wanted, "%08X", inet_addr(kDiscoveryGroup));
  std::ifstream table("/proc/net/igmp");
  std::string line, device;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (!line.empty() && line[0] != '\t' && line[0] != ' ')
      device = second;
    else if (device == interface && first == wanted)
      return true;
  }
  return false;
}
