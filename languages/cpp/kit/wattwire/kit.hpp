// What a cell calls: see languages/cpp/README.md for the whole API and its order.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "actions.hpp"

namespace wattwire {

// Core: opening, arrivals, end. Scheduler: senders and clients. Actions: goals.
class Kit : public Actions {
 public:
  using Actions::Actions;
};

// What a cell is: `roles` maps role names to functions, `settings` names to types.
struct Cell {
  std::map<std::string, std::function<void(Kit&)>> roles;
  std::map<std::string, Type> settings;
  // The values of a setting that this cell has, as JSON has them, where it lacks some.
  std::map<std::string, Names> values;
  Names capabilities;
  std::optional<int64_t> payload_bytes_max;
  std::optional<int64_t> record_bytes_max;  // the same for records, where their wire form is longer
};

// Raises Unsupported where the cell lacks what the specification asks for (C-03).
inline void check_capabilities(const Spec& spec, const Cell& cell) {
  const std::string& role = spec.string("role");
  Names roles;
  for (const auto& entry : cell.roles) roles.push_back(entry.first);
  if (!has(roles, role)) throw Unsupported("role " + role + "; this cell has " + join(roles));
  Names wanted = {"encoding." + spec.string("payload.encoding"), "loop." + spec.string("loop")};
  if (role_of(spec).sends) wanted.push_back("pacing." + spec.string("pacing"));
  if (spec.string("pattern") != "topic") wanted.push_back("reply." + spec.string("reply"));
  if (!spec.string("payload.literal").empty()) wanted.push_back("literal");
  if (!spec.string("tls.authority").empty()) wanted.push_back("tls");
  if (has({"client", "ping"}, role) && spec.string("loop") == "open" &&
      spec.integer("outstanding_max") > 1)
    wanted.push_back("async_client");
  for (const auto& name : wanted)
    if (!has(cell.capabilities, name))
      throw Unsupported(name + "; this cell has " + join(cell.capabilities));
  for (const auto& [name, values] : cell.values) {
    const std::string key = "settings." + name;
    if (const std::string& found = spec.at(key).source; !has(values, found))
      throw Unsupported(key + " " + found + "; this cell has " + join(values));
  }
  const bool record = spec.string("payload.encoding") == "record";
  const auto most =
      record && cell.record_bytes_max ? cell.record_bytes_max : cell.payload_bytes_max;
  if (most && spec.integer("payload.bytes") > *most)
    throw Unsupported("payload.bytes " + std::to_string(spec.integer("payload.bytes")) +
                      "; this cell carries at most " + std::to_string(*most));
}

// Runs this node and ends the process.
[[noreturn]] inline int run(int argc, char** argv, const Cell& cell) {
  int64_t process_start_ns = now_ns();
  // Never destroyed: threads that read them live until the process ends.
  auto* dialogue = new Dialogue();
  try {
    std::map<std::string, std::string> given;
    for (int at = 1; at + 1 < argc; at += 2) given[argv[at]] = argv[at + 1];
    if (argc != 5 || given.count("--spec") == 0 || given.count("--out") == 0)
      throw BadSpec("command line", std::to_string(argc - 1) + " arguments",
                    "--spec FILE --out DIR");
    if (access(given["--out"].c_str(), W_OK | X_OK) != 0)
      throw BadSpec("--out", given["--out"], "a folder that exists");
    auto* spec = new Spec(given["--spec"], cell.settings);
    check_capabilities(*spec, cell);
    dialogue->listen();
    // The thread that listens makes glibc guard each system call of this one against cancellation,
    // by two atomic operations: 4 % of a round trip over UDP. Nobody cancels this thread.
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    auto* kit = new Kit(*spec, dialogue, process_start_ns);
    cell.roles.at(spec->string("role"))(*kit);
    kit->finish(given["--out"]);
  } catch (const BadSpec& error) {
    dialogue->fail(2, error.key, error.what());
  } catch (const Unsupported& error) {
    dialogue->fail(3, {}, error.what());
  } catch (const std::exception& error) {
    dialogue->fail(4, {}, error.what());
  }
  // Not exit: a library's exit handlers must not hold the process past the contract's second.
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace wattwire
