// The API of the kit; languages/cpp/README.md describes all functions and their order.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "actions.hpp"
#include "encryption.hpp"
#include "point_cloud.hpp"

namespace wattwire {

// The base class Core handles opening, arrivals and the end, Scheduler handles senders and clients,
// and Actions handles goals.
class Kit : public Actions {
 public:
  using Actions::Actions;
};

// Throws Unsupported if the payload is longer or shorter than declared (C-03).
inline void check_size(const Spec& spec) {
  const std::string& encoding = spec.string("payload.encoding");
  const int64_t bytes = spec.integer("payload.bytes");
  const std::string found = "payload.bytes " + std::to_string(bytes) + "; this cell supports at ";
  const int64_t bytes_max = spec.integer(encoding == "record" ? "declared.record_bytes_max"
                                                              : "declared.payload_bytes_max");
  if (bytes > bytes_max) throw Unsupported(found + "most " + std::to_string(bytes_max));
  const int64_t unit = encoding == "bytes" ? 1 : encoding == "text" ? 2 : 0;
  const int64_t bytes_min = unit * spec.integer("declared.payload_bytes_min");
  if (bytes < bytes_min && spec.string("payload.literal").empty())
    throw Unsupported(found + "least " + std::to_string(bytes_min));
}

// The function of each role of a cell.
using Roles = std::map<std::string, std::function<void(Kit&)>>;

// Throws Unsupported if the specification requires something that it does not declare, or a role
// without a function (C-03).
inline void check_declaration(const Spec& spec, const Roles& functions) {
  const std::string& role = spec.string("role");
  Names roles;
  for (const auto& name : spec.strings("declared.roles"))
    if (functions.count(name) != 0) roles.push_back(name);
  if (!has(roles, role)) throw Unsupported("role " + role + "; this cell supports " + join(roles));
  Names required = {"encoding." + spec.string("payload.encoding"), "loop." + spec.string("loop")};
  if (role_of(spec).sends) required.push_back("pacing." + spec.string("pacing"));
  const std::string& pattern = spec.string("pattern");
  if (pattern != "topic" && pattern != "pipeline")
    required.push_back("reply." + spec.string("reply"));
  if (!spec.string("payload.literal").empty()) required.push_back("literal");
  if (has({"client", "ping"}, role) && spec.string("loop") == "open" &&
      spec.integer("outstanding_max") > 1)
    required.push_back("async_client");
  const Names capabilities = spec.strings("declared.capabilities");
  for (const auto& name : required)
    if (!has(capabilities, name))
      throw Unsupported(name + "; this cell supports " + join(capabilities));
  for (const auto& name : spec.settings()) {
    const std::string key = kSetting + name;
    const std::string& value = spec.at(key).source;
    const auto allowed = spec.allowed(name);
    if (allowed && !has(*allowed, value))
      throw Unsupported(key + " " + value + "; this cell supports " + join(*allowed));
  }
  if (spec.string("payload.encoding") == "pointcloud") check_point_cloud(spec);
  if (spec.string("reply") == "encrypt") check_encryption(spec);
  check_size(spec);
}

// Runs this node and ends the process.
[[noreturn]] inline void run(int argc, char** argv, const Roles& roles) {
  int64_t process_start_ns = now_ns();
  // Never destroyed, because threads use these objects until the process ends.
  auto* dialogue = new Dialogue();
  try {
    std::map<std::string, std::string> arguments;
    for (int at = 1; at + 1 < argc; at += 2) arguments[argv[at]] = argv[at + 1];
    if (argc != 5 || arguments.count("--spec") == 0 || arguments.count("--out") == 0)
      throw BadSpec("command line", std::to_string(argc - 1) + " arguments",
                    "--spec FILE --out DIR");
    if (access(arguments["--out"].c_str(), W_OK | X_OK) != 0)
      throw BadSpec("--out", arguments["--out"], "a writable folder");
    auto* spec = new Spec(arguments["--spec"]);
    check_declaration(*spec, roles);
    auto* kit = new Kit(*spec, dialogue, process_start_ns, arguments["--out"]);
    kit->limit_end();
    dialogue->listen();
    // With a second thread glibc prepares each system call for cancellation with two atomic
    // operations, which cost 4 % of a round trip over UDP. No code cancels this thread.
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    roles.at(spec->string("role"))(*kit);
    kit->finish();
  } catch (const BadSpec& error) {
    dialogue->fail(2, error.key, error.what());
  } catch (const Unsupported& error) {
    dialogue->fail(3, {}, error.what());
  } catch (const std::exception& error) {
    dialogue->fail(4, {}, error.what());
  }
  // Calls _exit, because exit handlers of libraries could exceed the contract's limit of 1 s.
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace wattwire
