// Watches the topics of a running ROS graph as one more subscriber, until SIGINT, SIGTERM or the
// end of its input. It publishes nothing.

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "watching.hpp"
#include "wattwire_ros2/leaving.hpp"

namespace {

constexpr int64_t kTurnNs = 100'000'000;
constexpr int64_t kScanNs = 500'000'000;         // between two scans of a graph that changes
constexpr int64_t kQuietScanNs = 2'000'000'000;  // of one that does not
constexpr int64_t kLongScanNs = 1'000'000;       // a scan that delays the messages noticeably
constexpr int64_t kUsageNs = 1'000'000'000;
constexpr int kUsage = 2, kFailed = 4;  // exit codes

volatile std::sig_atomic_t signalled = 0;

// What limits the nodes that the probe can see.
constexpr const char* kScope[] = {
    "ROS_DOMAIN_ID",    "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER",
};

bool input_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, 0) <= 0) return false;
  char bytes[64];
  return read(STDIN_FILENO, bytes, sizeof bytes) <= 0;
}

Fact usage(uint64_t records) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return Fact("usage")
      .number("monotonic_ns", clock_ns(CLOCK_MONOTONIC))
      .number("cpu_ns", clock_ns(CLOCK_PROCESS_CPUTIME_ID))
      .number("rss_kib", pages * sysconf(_SC_PAGESIZE) / 1024)
      .number("rss_peak_kib", used.ru_maxrss)
      .number("records", static_cast<int64_t>(records));
}

void describe(FactFile& facts) {
  Fact scope;
  for (const char* name : kScope) {
    const char* value = std::getenv(name);
    if (value != nullptr) scope.text(name, value);
  }
  scope.text("RMW_IMPLEMENTATION", rmw_get_implementation_identifier());  // also without a variable
  facts.write(Fact("probe")
                  .number("pid", getpid())
                  .text("library", rmw_get_implementation_identifier())
                  .raw("scope", scope.json()));
}

// Messages wait during a scan, so the times of a long one are a fact.
void scan(Probe& probe, FactFile& facts) {
  const int64_t begin_ns = clock_ns(CLOCK_REALTIME), monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  probe.scan();
  if (clock_ns(CLOCK_MONOTONIC) < monotonic_ns + kLongScanNs) return;
  facts.write(Fact("scan").number("begin_ns", begin_ns).number("end_ns", clock_ns(CLOCK_REALTIME)));
}

void watch(const Arguments& arguments) {
  if (!arguments.domain.empty()) setenv("ROS_DOMAIN_ID", arguments.domain.c_str(), 1);
  FactFile facts(arguments.out + "/facts.jsonl");
  RecordFiles records(arguments.out);
  Probe probe(arguments, facts, records);
  describe(facts);
  int64_t scanned_ns = 0, looked_ns = 0, next_usage_ns = 0;
  bool has_changed = true;
  while (signalled == 0) {
    has_changed = probe.turn(kTurnNs) || has_changed;
    const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns < looked_ns + kTurnNs) continue;
    looked_ns = now_ns;
    if (input_ended()) break;
    if (now_ns >= scanned_ns + (has_changed ? kScanNs : kQuietScanNs)) {
      scan(probe, facts);
      has_changed = false;
      scanned_ns = now_ns;
    }
    if (now_ns >= next_usage_ns) {
      facts.write(usage(records.count()));
      next_usage_ns = now_ns + kUsageNs;
    }
  }
  scan(probe, facts);
  facts.write(usage(records.count()));
  leave_by_exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  try {
    watch(parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    std::cerr << "probe: " << error.what() << '\n';
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "probe: " << error.what() << '\n';
    return kFailed;
  }
  return 0;
}
