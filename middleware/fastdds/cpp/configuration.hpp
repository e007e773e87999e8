// The process and participant of a run: its domain, and transports that do not leave this host.

#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fastdds/dds/domain/qos/DomainParticipantQos.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>
#include <fstream>
#include <memory>
#include <string>

#include "wattwire/kit.hpp"

namespace fastdds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastdds::rtps;

// The library announces a participant to as many processes of this host; a pipeline has 64 nodes.
inline constexpr uint32_t kParticipantsMax = 64;
inline constexpr const char* kLoopback = "127.0.0.1";

// Variables of the shell that configure Fast DDS.
inline constexpr const char* kForeignVariables[] = {
    "FASTDDS_BUILTIN_TRANSPORTS", "FASTDDS_DEFAULT_PROFILES_FILE", "FASTDDS_ENVIRONMENT_FILE",
    "FASTDDS_STATISTICS",         "ROS_DISCOVERY_SERVER",          "ROS_SUPER_CLIENT",
};

// Makes the process independent of the shell's configuration and of files in the current folder.
inline void ignore_foreign_configuration() {
  for (const char* name : kForeignVariables) unsetenv(name);
  setenv("SKIP_DEFAULT_XML_FILE", "1", 1);
}

// Returns the spec's domain or, if it is 0, a domain from 1 to 100. The FNV-1a hash of the run
// token determines it, so that all languages agree.
inline uint32_t domain_of(const wattwire::Kit& kit) {
  const int64_t domain = kit.integer("settings.domain", 0, 101);
  if (domain != 0) return static_cast<uint32_t>(domain);
  uint32_t state = 0x811C9DC5u;
  for (unsigned char byte : kit.string("run")) state = (state ^ byte) * 0x01000193u;
  return 1 + state % 100;
}

// Returns a participant's QoS with these transports. UDP uses only the loopback interface and has
// no multicast; shared memory discovers participants by its own multicast port.
inline fastdds::DomainParticipantQos participant_qos(const std::string& transports) {
  fastdds::DomainParticipantQos qos = fastdds::PARTICIPANT_QOS_DEFAULT;
  qos.transport().use_builtin_transports = false;
  auto& used = qos.transport().user_transports;
  if (transports != "udp") used.push_back(std::make_shared<rtps::SharedMemTransportDescriptor>());
  if (transports == "shm") return qos;
  auto udp = std::make_shared<rtps::UDPv4TransportDescriptor>();
  udp->interfaceWhiteList.push_back(kLoopback);
  udp->maxInitialPeersRange = kParticipantsMax;
  used.push_back(udp);
  rtps::Locator_t unicast, peer;  // a unicast locator replaces the default multicast locator
  rtps::IPLocator::setIPv4(peer, kLoopback);
  auto& builtin = qos.wire_protocol().builtin;
  builtin.metatrafficUnicastLocatorList.push_back(unicast);
  builtin.initialPeersList.push_back(peer);
  return qos;
}

// Returns the file name of the Fast DDS library that this process has mapped.
inline std::string mapped_library() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/libfastdds.so");
    if (at != std::string::npos) return line.substr(at + 1);
  }
  return "libfastdds";
}

// Returns whether this process has mapped a segment of the shared-memory transport.
inline bool maps_shared_memory() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/dev/shm/fastdds_") != std::string::npos) return true;
  return false;
}

// Ends the node with exit code 4 if the library crashes during its shutdown. If a peer was killed,
// Fast DDS 3.2 may access a port of shared memory that it has unmapped.
inline void end_crashes_with_code() {
  auto failed = [](int) {
    static const char kText[] = "Fast DDS crashed while the participant was deleted\n";
    [[maybe_unused]] const ssize_t written = write(2, kText, sizeof kText - 1);
    _exit(4);
  };
  std::signal(SIGSEGV, failed);
  std::signal(SIGBUS, failed);
}
