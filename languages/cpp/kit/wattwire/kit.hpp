// The API of the kit; languages/cpp/README.md describes all functions and their order.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actions.hpp"
#include "encryption.hpp"
#include "point_cloud.hpp"

namespace wattwire {

// The base class Core handles opening, arrivals and the end, Scheduler handles senders and clients,
// and Actions handles goals. A member of a topology (C-41) has parts: its publishers and
// subscribers, each with the spec of a node of its own.
class Kit : public Actions {
 public:
  Kit(const Spec& spec, Dialogue* dialogue, int64_t process_start_ns, const std::string& out)
      : Actions(spec, dialogue, process_start_ns, out) {
    for (int64_t number = 0; number < spec.parts(); ++number) {
      part_specs_.push_back(std::make_unique<Spec>(spec.part(number)));
      parts_.push_back(std::make_unique<Kit>(*part_specs_.back(), dialogue, process_start_ns, out));
    }
  }

  const std::vector<std::unique_ptr<Kit>>& parts() const { return parts_; }
  // Returns whether this part of a member is a publisher.
  bool publishes() const { return sender_; }

  // Calls `send(number, buffer)` for each message of a part when it is due, and `poll(timeout_ns)`
  // until the end. `send` returns false if the message was not sent.
  template <class Send, class Poll>
  void drive_parts(Send send, Poll poll_once) {
    while (dialogue_.start_ns() == 0 && !dialogue_.stopped()) poll_once(kGoLookNs);
    wait_go();
    for (const auto& part : parts_) part->wait_go();
    while (send_due(send, poll_once)) {
    }
    print_sent_of_parts();
    poll(poll_once);
  }

  void finish() override {
    if (parts_.empty()) return Actions::finish();
    std::call_once(finished_, [this] {
      Counts total;
      std::vector<Object> entries;
      for (const auto& part : parts_) {
        const std::string node = std::to_string(part->integer("node"));
        const Counts counts = part->write("samples-" + node + ".bin");
        total += counts;
        entries.push_back(Object().add("node", part->integer("node")).add(fields(counts)));
      }
      dialogue_.line("DONE", fields(total).add("parts", entries));
    });
  }

 protected:
  int64_t last_arrival_ns() override {
    int64_t last_ns = Actions::last_arrival_ns();
    for (const auto& part : parts_) last_ns = std::max(last_ns, part->last_arrival_ns());
    return last_ns;
  }

 private:
  // Sends what is due and polls until the next message. Returns false if none follows.
  template <class Send, class Poll>
  bool send_due(Send& send, Poll& poll_once) {
    int64_t wait_ns = kNapNs;
    bool has_more = false;
    for (size_t number = 0; number < parts_.size(); ++number) {
      Kit& part = *parts_[number];
      if (!part.publishes() || part.finished()) continue;
      has_more = true;
      if (Slot* slot = part.tick()) {
        bool sent = false;
        try {
          sent = send(number, part.begin(slot));
        } catch (const SendFailed&) {  // `fail` records it
        }
        sent ? part.complete(slot) : part.fail(slot);
      }
      wait_ns = std::min(wait_ns, part.wait_ns());
    }
    if (has_more) poll_once(wait_ns);
    return has_more;
  }

  // Prints SENT with an entry for each publisher; prints nothing without publishers.
  void print_sent_of_parts() {
    Sent total;
    std::vector<Object> entries;
    for (const auto& part : parts_) {
      if (!part->publishes()) continue;
      const Sent own = part->sent();
      if (own.begin_ns != kUnknownNs) {
        const bool is_first = total.begin_ns == kUnknownNs;
        total.begin_ns = is_first ? own.begin_ns : std::min(total.begin_ns, own.begin_ns);
        total.end_ns = std::max(total.end_ns, own.end_ns);
      }
      total.sent += own.sent;
      total.scheduled += own.scheduled;
      total.skipped += own.skipped;
      entries.push_back(Object().add("node", part->integer("node")).add(own.fields()));
    }
    if (!entries.empty()) dialogue_.line("SENT", total.fields().add("parts", entries));
  }

  std::vector<std::unique_ptr<Spec>> part_specs_;
  std::vector<std::unique_ptr<Kit>> parts_;
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

// Throws Unsupported if a value of the specification of a node, or of a part, is not declared.
inline void check_values(const Spec& spec) {
  const std::string& role = spec.string("role");
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
  check_values(spec);
  for (int64_t number = 0; number < spec.parts(); ++number) check_values(spec.part(number));
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
