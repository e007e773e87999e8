// The domain of a run and its Cyclone DDS configuration, independent of the shell's environment.

#pragma once

#include <dds/dds.h>

#include <string>

#include "security.hpp"
#include "wattwire/kit.hpp"
#include "xml.hpp"

// Returns the spec's domain or, if it is 0, a domain from 1 to 100. The FNV-1a hash of the run
// token determines it, so that all languages agree.
inline dds_domainid_t domain_of(const wattwire::Kit& kit) {
  const int64_t domain = kit.integer("settings.domain", 0, 230);
  if (domain != 0) return static_cast<dds_domainid_t>(domain);
  uint32_t state = 0x811C9DC5u;
  for (unsigned char byte : kit.string("run")) state = (state ^ byte) * 0x01000193u;
  return 1 + state % 100;
}

// Returns the only interface of the node: the setting, or the host's if the setting is empty.
inline const std::string& interface_of(const wattwire::Kit& kit) {
  const std::string& setting = kit.string("settings.interface");
  return setting.empty() ? kit.string("host.interface") : setting;
}

// Returns a configuration with one interface, multicast as set, a tag that isolates the run, and
// the run's credentials if it is secured.
inline std::string configuration(const wattwire::Kit& kit) {
  std::string peers;
  for (const auto& peer : kit.strings("peers.addresses"))
    peers += "<Peer Address=" + quoted_xml(peer) + "/>";
  const std::string multicast = kit.boolean("settings.multicast") ? "true" : "false";
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=" +
         quoted_xml(interface_of(kit)) + "/></Interfaces><AllowMulticast>" + multicast +
         "</AllowMulticast></General><Discovery><Tag>" + kit.string("run") +
         "</Tag><ParticipantIndex>auto</ParticipantIndex>"
         "<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex>"
         "<Peers>" +
         peers + "</Peers></Discovery>" + security_configuration(kit) + "</Domain></CycloneDDS>";
}
