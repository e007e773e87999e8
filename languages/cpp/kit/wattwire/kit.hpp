// The API of the kit; languages/cpp/README.md describes all functions and their order.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
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

// The description of a cell. `roles` maps role names to functions, and `settings` maps names to
// types.
struct Cell {
  std::map<std::string, std::function<void(Kit&)>> roles;
  std::map<std::string, Type> settings;
  // Supported values as JSON, for settings of which the cell supports only some values.
  std::map<std::string, Names> values;
  Names capabilities;
  std::optional<int64_t> payload_bytes_max;
  std::optional<int64_t> record_bytes_max;  // maximum nominal size, if records grow on the wire
};

// Throws Unsupported if the specification requires a capability that the cell lacks (C-03).
inline void check_capabilities(const Spec& spec, const Cell& cell) {
  const std::string& role = spec.string("role");
  Names roles;
  for (const auto& entry : cell.roles) roles.push_back(entry.first);
  if (!has(roles, role)) throw Unsupported("role " + role + "; this cell supports " + join(roles));
  Names required = {"encoding." + spec.string("payload.encoding"), "loop." + spec.string("loop")};
  if (role_of(spec).sends) required.push_back("pacing." + spec.string("pacing"));
  const std::string& pattern = spec.string("pattern");
  if (pattern != "topic" && pattern != "pipeline")
    required.push_back("reply." + spec.string("reply"));
  if (!spec.string("payload.literal").empty()) required.push_back("literal");
  if (!spec.string("tls.authority").empty()) required.push_back("tls");
  if (has({"client", "ping"}, role) && spec.string("loop") == "open" &&
      spec.integer("outstanding_max") > 1)
    required.push_back("async_client");
  for (const auto& name : required)
    if (!has(cell.capabilities, name))
      throw Unsupported(name + "; this cell supports " + join(cell.capabilities));
  for (const auto& [name, values] : cell.values) {
    const std::string key = "settings." + name;
    if (const std::string& value = spec.at(key).source; !has(values, value))
      throw Unsupported(key + " " + value + "; this cell supports " + join(values));
  }
  if (spec.string("payload.encoding") == "pointcloud") check_point_cloud(spec);
  if (spec.string("reply") == "encrypt") check_encryption(spec);
  const bool record = spec.string("payload.encoding") == "record";
  const auto bytes_max =
      record && cell.record_bytes_max ? cell.record_bytes_max : cell.payload_bytes_max;
  if (bytes_max && spec.integer("payload.bytes") > *bytes_max)
    throw Unsupported("payload.bytes " + std::to_string(spec.integer("payload.bytes")) +
                      "; this cell supports at most " + std::to_string(*bytes_max));
}

// Runs this node and ends the process.
[[noreturn]] inline int run(int argc, char** argv, const Cell& cell) {
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
    auto* spec = new Spec(arguments["--spec"], cell.settings);
    check_capabilities(*spec, cell);
    auto* kit = new Kit(*spec, dialogue, process_start_ns, arguments["--out"]);
    kit->limit_end();
    dialogue->listen();
    // With a second thread glibc prepares each system call for cancellation with two atomic
    // operations, which cost 4 % of a round trip over UDP. No code cancels this thread.
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    cell.roles.at(spec->string("role"))(*kit);
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
