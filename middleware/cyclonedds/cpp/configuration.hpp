// Which domain, and Cyclone DDS's configuration in it: nothing of the shell's reaches a node.

#pragma once

#include <dds/dds.h>

#include <string>

#include "wattwire/kit.hpp"

// The spec's domain, or one of 1 … 100 from the run token (FNV-1a, so that all languages agree).
inline dds_domainid_t domain_of(const wattwire::Kit& kit) {
  const int64_t given = kit.integer("settings.domain", 0, 230);
  if (given != 0) return static_cast<dds_domainid_t>(given);
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

// One interface, no multicast, and the run's own tag: participants of other tags do not exist.
inline std::string configuration(const wattwire::Kit& kit) {
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=" +
         quoted_xml(kit.string("settings.interface")) +
         "/></Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Tag>" +
         kit.string("run") +
         "</Tag><ParticipantIndex>auto</ParticipantIndex>"
         "<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex>"
         "<Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery></Domain></CycloneDDS>";
}
