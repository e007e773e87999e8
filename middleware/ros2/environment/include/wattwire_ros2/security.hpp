// SROS 2: ROS's variables and the enclave of a node, from the credentials of the run.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "wattwire/kit.hpp"

inline constexpr const char* kSecurityVariables[] = {
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_STRATEGY",
};

// File names in an enclave of SROS 2, and the spec keys of their contents.
inline constexpr const char* kCredentials[][2] = {
    {"identity_ca.cert.pem", "tls.authority"}, {"permissions_ca.cert.pem", "tls.authority"},
    {"cert.pem", "tls.certificate"},           {"key.pem", "tls.key"},
    {"governance.p7s", "security.governance"}, {"permissions.p7s", "security.permissions"},
};

// Sets ROS's variables of security. The enclave consists of links in the folder of the private key,
// which ends with the run.
inline void configure_security(const wattwire::Kit& kit) {
  namespace fs = std::filesystem;
  for (const char* name : kSecurityVariables) unsetenv(name);
  if (kit.string("settings.security") != "on") return;
  for (const auto& [name, key] : kCredentials)
    if (kit.string(key).empty())
      throw wattwire::MiddlewareFailed(std::string("SROS 2 needs ") + key + "; it is empty");
  const fs::path keystore = fs::absolute(kit.string("tls.key")).parent_path() / "keystore";
  fs::create_directories(keystore / "enclaves");
  for (const auto& [name, key] : kCredentials) {
    const fs::path link = keystore / "enclaves" / name;
    fs::remove(link);
    fs::create_symlink(fs::absolute(kit.string(key)), link);
  }
  setenv("ROS_SECURITY_ENABLE", "true", 1);
  setenv("ROS_SECURITY_STRATEGY", "Enforce", 1);
  setenv("ROS_SECURITY_KEYSTORE", keystore.c_str(), 1);
}

// Returns what is in force if security is on. With this strategy, rcl makes no context without an
// enclave, and the RMW no node without security. No function of rcl returns the cipher.
inline std::map<std::string, wattwire::Scalar> effective_security(const wattwire::Kit& kit) {
  if (kit.string("settings.security") != "on") return {};
  return {{"security_protocol", std::string("SROS 2, strategy Enforce")},
          {"security_cipher", std::string("not told by the library")}};
}
