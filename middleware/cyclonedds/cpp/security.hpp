// DDS Security (OMG): the plug-ins and credentials of a node, and what the library reports of them.

#pragma once

#include <dds/dds.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "wattwire/kit.hpp"
#include "xml.hpp"

// Folder of the library's plug-ins; environment/build.py finds it.
inline constexpr char kPluginsVariable[] = "WATTWIRE_CYCLONEDDS_PLUGINS";

inline bool is_secured(const wattwire::Kit& kit) { return kit.string("settings.security") == "on"; }

inline std::string plugin_path(const std::string& name) {
  const char* folder = std::getenv(kPluginsVariable);
  if (folder == nullptr)
    throw wattwire::MiddlewareFailed(
        std::string(kPluginsVariable) +
        " is not set; it names the folder of libdds_security_auth.so, libdds_security_ac.so and "
        "libdds_security_crypto.so (Debian: package libddsc0debian)");
  return std::string(folder) + "/libdds_security_" + name + ".so";
}

inline std::string plugin_element(const std::string& name, const std::string& function) {
  return "<Library path=" + quoted_xml(plugin_path(name)) + " initFunction=\"init_" + function +
         "\" finalizeFunction=\"finalize_" + function + "\"/>";
}

inline std::string file_element(const wattwire::Kit& kit, const std::string& name,
                                const std::string& key) {
  if (kit.string(key).empty())
    throw wattwire::MiddlewareFailed("DDS Security needs a file; " + key + " is empty");
  return "<" + name + ">file:" + escaped_xml(kit.string(key)) + "</" + name + ">";
}

// Returns the configuration of the three plug-ins; empty without security. One authority signs the
// identities and the documents of a run.
inline std::string security_configuration(const wattwire::Kit& kit) {
  if (!is_secured(kit)) return "";
  return "<Security><Authentication>" + plugin_element("auth", "authentication") +
         file_element(kit, "IdentityCA", "tls.authority") +
         file_element(kit, "IdentityCertificate", "tls.certificate") +
         file_element(kit, "PrivateKey", "tls.key") + "</Authentication><AccessControl>" +
         plugin_element("ac", "access_control") +
         file_element(kit, "PermissionsCA", "tls.authority") +
         file_element(kit, "Governance", "security.governance") +
         file_element(kit, "Permissions", "security.permissions") +
         "</AccessControl><Cryptographic>" + plugin_element("crypto", "crypto") +
         "</Cryptographic></Security>";
}

// Returns "DDS Security" if the library has loaded the three plug-ins into this process; throws
// MiddlewareFailed otherwise.
inline std::string loaded_protocol() {
  for (const char* name : {"auth", "ac", "crypto"}) {
    void* plugin = dlopen(plugin_path(name).c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (plugin == nullptr)
      throw wattwire::MiddlewareFailed("the library has not loaded " + plugin_path(name));
    dlclose(plugin);
  }
  return "DDS Security";
}

// Keeps the first message that the library logs, because its return codes name no cause, and
// prints all messages as the library does.
class LibraryLog {
 public:
  LibraryLog() { dds_set_log_sink(&LibraryLog::log, this); }
  ~LibraryLog() { dds_set_log_sink(nullptr, nullptr); }
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;

  // Returns ": " and the first message, or an empty text without messages.
  std::string cause() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_.empty() ? "" : ": " + first_;
  }

 private:
  static void log(void* self, const dds_log_data_t* data) {
    auto& log = *static_cast<LibraryLog*>(self);
    const std::lock_guard<std::mutex> lock(log.mutex_);
    // As the library's own sink: the header precedes the message, and a line feed follows it.
    std::fwrite(data->message - data->hdrsize, 1, data->hdrsize + data->size + 1, stderr);
    if (!log.first_.empty()) return;
    log.first_.assign(data->message, data->size);
    while (!log.first_.empty() && log.first_.back() == '\n') log.first_.pop_back();
    std::replace(log.first_.begin(), log.first_.end(), '\n', ' ');
  }

  mutable std::mutex mutex_;
  std::string first_;
};
