// The domain of a run and its Cyclone DDS configuration, independent of the shell's environment.

#pragma once

#include <dds/dds.h>

#include <string>

#include "wattwire/kit.hpp"

// Returns the spec's domain or, if it is 0, a domain from 1 to 100. The FNV-1a hash of the run
// token determines it, so that all languages agree.
inline dds_domainid_t domain_of(const wattwire::Kit& kit) {
  const int64_t domain = kit.integer("settings.domain", 0, 230);
  if (domain != 0) return static_cast<dds_domainid_t>(domain);
  uint32_t state = 0x811C9DC5u;
  for (unsigned char byte : kit.string("run")) state = (state ^ byte) * 0x01000193u;
  return 1 + state % 100;
}

inline std::string quoted_xml(const std::string& text) {
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? "&quot;" : c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out + "\"";
}

// Returns a configuration with one interface, no multicast, and a tag that isolates the run.
inline std::string configuration(const wattwire::Kit& kit) {
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=" +
         quoted_xml(kit.string("settings.interface")) +
         "/></Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Tag>" +
         kit.string("run") +
         "</Tag><ParticipantIndex>auto</ParticipantIndex>"
         "<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex>"
         "<Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery></Domain></CycloneDDS>";
}
