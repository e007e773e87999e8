// The process's ROS configuration: all that ROS reads from the environment, set from the spec. The
// RMW is chosen when rcl is initialised, so that this comes first.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "network.hpp"
#include "security.hpp"
#include "sha256.hpp"
#include "wattwire/kit.hpp"

// What a shell may have set for another robot; only the spec configures a node.
inline constexpr const char* kForeignVariables[] = {
    "CYCLONEDDS_URI",
    "FASTDDS_BUILTIN_TRANSPORTS",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "RMW_FASTRTPS_PUBLICATION_MODE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_DISCOVERY_SERVER",
    "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS",
    "ZENOH_SESSION_CONFIG_URI",
};

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

inline void set_variable(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
}

// The spec's domain, or one of 1 … 100 from the run token (FNV-1a, so that all languages agree).
inline int64_t domain_of(wattwire::Kit& kit) {
  if (kit.integer("settings.domain") != 0) return kit.integer("settings.domain");
  uint32_t state = 0x811C9DC5;
  for (unsigned char byte : kit.string("run")) state = (state ^ byte) * 0x01000193;
  return 1 + state % 100;
}

// Points every RMW's own variable at the profile; returns its sha256, or "" where there is none.
inline std::string use_profile(wattwire::Kit& kit) {
  const std::string path = kit.string("settings.rmw_profile");
  if (path.empty()) return "";
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw wattwire::BadSpec("settings.rmw_profile", path, "the path of a readable file");
  }
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  const std::string absolute = std::filesystem::absolute(path).string();
  set_variable("FASTDDS_DEFAULT_PROFILES_FILE", absolute);
  set_variable("FASTRTPS_DEFAULT_PROFILES_FILE", absolute);
  set_variable("CYCLONEDDS_URI", "file://" + absolute);
  set_variable("ZENOH_SESSION_CONFIG_URI", absolute);
  return sha256_hex(content);
}

// Sets the variable that limits discovery to this host; its name depends on the release.
inline void limit_discovery(bool localhost) {
  if (variable("ROS_DISTRO") == "humble") {
    set_variable("ROS_LOCALHOST_ONLY", localhost ? "1" : "0");
  } else {
    set_variable("ROS_AUTOMATIC_DISCOVERY_RANGE", localhost ? "LOCALHOST" : "SUBNET");
  }
}

// Returns whether ROS's variables cannot express transports and range, so that a profile does.
inline bool needs_own_profile(wattwire::Kit& kit) {
  const bool udp_alone = kit.string("settings.transports") == "udp";
  const std::string profile = kit.string("settings.rmw_profile");
  if (profile.empty()) return udp_alone || discovery_range(kit) == "interface";
  if (udp_alone) {
    throw wattwire::BadSpec("settings.rmw_profile", profile,
                            "empty where settings.transports is udp: a profile states its "
                            "transports itself");
  }
  return false;
}

// Configures Fast DDS with one of wattwire's profiles. If ROS's own variables limit discovery to
// the host, rmw_fastrtps ignores profiles and creates all transports, including shared memory. The
// range therefore stays at SYSTEM_DEFAULT, and the profile names the interface.
inline void use_own_profile(const std::string& profile) {
  if (variable("ROS_DISTRO") == "humble") {
    set_variable("ROS_LOCALHOST_ONLY", "0");
  } else {
    set_variable("ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT");
  }
  set_variable("FASTDDS_DEFAULT_PROFILES_FILE", profile);
  set_variable("FASTRTPS_DEFAULT_PROFILES_FILE", profile);
}

// The transports that the process's memory map shows, as a level of settings.transports. Only Fast
// DDS can be observed so: with another RMW the requested level is returned.
inline std::string transports_in_use(const std::string& requested, const std::string& rmw) {
  if (rmw.find("fastrtps") == std::string::npos) {
    if (requested == "udp") {
      throw wattwire::MiddlewareFailed("settings.transports = udp is known for Fast DDS only and " +
                                       rmw + " is loaded; use settings.rmw_profile");
    }
    return requested;
  }
  bool shared_memory = false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"/dev/shm/fastdds_", "/dev/shm/fastrtps_"}) {
      shared_memory = shared_memory || line.find(name) != std::string::npos;
    }
  }
  if (requested == "udp" && shared_memory) {
    throw wattwire::MiddlewareFailed(
        "settings.transports = udp, but Fast DDS has mapped shared memory (/dev/shm/fast* in "
        "/proc/self/maps); this release ignores the profile");
  }
  return shared_memory ? "default" : "udp";
}

// Sets ROS's environment variables from the spec; returns the sha256 of the RMW's profile or "".
inline std::string configure_process(wattwire::Kit& kit) {
  for (const char* name : kForeignVariables) unsetenv(name);
  set_variable("ROS_DOMAIN_ID", std::to_string(domain_of(kit)));
  if (needs_own_profile(kit)) {
    use_own_profile(fast_dds_profile(kit));
    if (discovery_range(kit) == "interface") {
      set_variable("CYCLONEDDS_URI", cyclone_dds_configuration(kit));
    }
  } else {
    limit_discovery(discovery_range(kit) == "localhost");
  }
  if (!kit.string("settings.rmw").empty()) {
    set_variable("RMW_IMPLEMENTATION", kit.string("settings.rmw"));
  }
  configure_security(kit);
  return use_profile(kit);
}

// File names, with their versions, of the middleware's libraries that this process has mapped.
inline std::string loaded_libraries() {
  const std::regex wanted(
      "/(lib(rmw_(?!dds_common)\\w+_cpp|fastdds|fastrtps|ddsc|zenohc?)\\.so[\\w.]*)$");
  std::set<std::string> names;
  std::ifstream maps("/proc/self/maps");
  std::smatch match;
  for (std::string line; std::getline(maps, line);) {
    if (std::regex_search(line, match, wanted)) names.insert(match[1]);
  }
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : " ") + name;
  return joined;
}

// The version in the manifest of a ROS package on AMENT_PREFIX_PATH.
inline std::string package_version(const std::string& package) {
  const std::regex version("<version>\\s*([^<\\s]+)\\s*</version>");
  std::istringstream prefixes(variable("AMENT_PREFIX_PATH"));
  for (std::string prefix; std::getline(prefixes, prefix, ':');) {
    std::ifstream file(prefix + "/share/" + package + "/package.xml");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::smatch match;
    if (std::regex_search(text, match, version)) return match[1];
  }
  return "unknown";
}
