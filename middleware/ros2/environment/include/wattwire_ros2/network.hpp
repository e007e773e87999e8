// The network between hosts: configurations of RMWs for it, and sockets on one interface.

#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "wattwire/kit.hpp"

inline constexpr const char* kLocalhost = "127.0.0.1";
// Stands for the address in the profiles whose name ends with `_interface.xml`.
inline constexpr const char* kAddressPlaceholder = "HOST_ADDRESS";

// Returns the range of discovery in force: localhost, subnet, or interface (host.interface).
inline std::string discovery_range(wattwire::Kit& kit) {
  const std::string level = kit.string("settings.discovery");
  if (!level.empty()) return level;
  return kit.string("host.address") == kLocalhost ? "localhost" : "interface";
}

// Returns the folder for this node's files, from the command line (contract: --out DIR).
inline std::string out_folder() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string argument;
  while (std::getline(file, argument, '\0')) {
    if (argument == "--out" && std::getline(file, argument, '\0')) return argument;
  }
  return ".";
}

// Returns wattwire's profile for the transports and the range of the settings. A profile for an
// interface contains the address of the host, so it is written into the node's folder.
inline std::string fast_dds_profile(wattwire::Kit& kit) {
  const std::string reach = discovery_range(kit);
  const std::string name = kit.string("settings.transports") + "_" + reach + ".xml";
  const char* folder = std::getenv("WATTWIRE_ROS2_PROFILES");
  const std::string profile = std::string(folder == nullptr ? "" : folder) + "/" + name;
  if (reach != "interface") return profile;
  std::ifstream file(profile, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  const size_t at = content.find(kAddressPlaceholder);
  if (at == std::string::npos) {
    throw wattwire::MiddlewareFailed(profile + ": no readable profile with " + kAddressPlaceholder);
  }
  // Fast DDS compares with the first address of each interface; that of lo is 127.0.0.1.
  const std::string address = kit.string("host.address");
  content.replace(at, std::string(kAddressPlaceholder).size(),
                  address.rfind("127.", 0) == 0 ? kLocalhost : address);
  const std::string written = std::filesystem::absolute(out_folder() + "/" + name).string();
  if (!(std::ofstream(written, std::ios::binary) << content)) {
    throw wattwire::MiddlewareFailed("cannot write " + written);
  }
  return written;
}

// Returns the configuration of Cyclone DDS for the interface of the host.
inline std::string cyclone_dds_configuration(wattwire::Kit& kit) {
  std::string name;
  for (const char c : kit.string("host.interface"))
    name += c == '"' ? "&quot;" : c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"" + name +
         "\"/></Interfaces></General></Domain></CycloneDDS>";
}

// Binds the process's UDP sockets to host.interface, if the range of discovery requires it. A
// socket on an address of the host stays unbound, because datagrams from the same host arrive on
// lo. Linux delivers to a socket for multicast what arrives on any interface. Returns the range in
// force. It is subnet for an RMW that no configuration limits: if another network then carries its
// messages, wattwire excludes the run.
inline std::string limit_to_interface(wattwire::Kit& kit, const std::string& rmw) {
  const std::string reach = discovery_range(kit);
  if (reach != "interface") return reach;
  const bool is_limited =
      rmw.find("fastrtps") != std::string::npos || rmw.find("cyclonedds") != std::string::npos;
  if (!is_limited && kit.string("settings.rmw_profile").empty()) return "subnet";
  const std::string interface = kit.string("host.interface");
  const std::string address = kit.string("host.address");
  const bool is_loopback = address.rfind("127.", 0) == 0;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return reach;
  while (const dirent* entry = readdir(folder)) {
    const int handle = std::atoi(entry->d_name);
    int type = 0;
    socklen_t bytes = sizeof type;
    if (getsockopt(handle, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) continue;
    sockaddr_in own{};
    bytes = sizeof own;
    if (getsockname(handle, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) continue;
    if (own.sin_family != AF_INET || type != SOCK_DGRAM) continue;
    const std::string local = inet_ntoa(own.sin_addr);
    if (local != address && (is_loopback || local != kLocalhost))
      setsockopt(handle, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                 static_cast<socklen_t>(interface.size() + 1));
  }
  closedir(folder);
  return reach;
}
