// Drives the kit without a middleware and prints the cost of a window: `messages PATH ENCODING
// REPLY COUNT`, where PATH is a path of test_cpp_messages.py. The first line is the number of
// allocations. Each further line is a function that was called, with the number of calls.
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <new>

#include "wattwire/kit.hpp"
#include "wattwire/record_json.hpp"

using namespace wattwire;

namespace {

std::atomic<bool> watching{false};
std::atomic<uint64_t> allocations{0};

struct Entered {
  std::atomic<void*> function{nullptr};
  std::atomic<uint64_t> count{0};
};
std::array<Entered, 16384> entered;

__attribute__((no_instrument_function)) void* counted(size_t bytes) {
  if (watching.load(std::memory_order_relaxed)) allocations.fetch_add(1);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

// The compiler inserts a call of this function into every function (-finstrument-functions).
extern "C" __attribute__((no_instrument_function)) void __cyg_profile_func_enter(void* function,
                                                                                 void*) {
  static thread_local bool inside = false;  // excludes the calls of this function
  if (inside) return;
  inside = true;
  for (size_t at = reinterpret_cast<size_t>(function) / 16 % entered.size(); watching;
       at = (at + 1) % entered.size()) {
    void* owner = nullptr;
    if (entered[at].function.compare_exchange_strong(owner, function) || owner == function) {
      entered[at].count.fetch_add(1);
      break;
    }
  }
  inside = false;
}
extern "C" __attribute__((no_instrument_function)) void __cyg_profile_func_exit(void*, void*) {}

namespace {

constexpr uint64_t kSender = 1, kReceiver = 2;
constexpr size_t kBytes = 128;  // as a record: two samples
constexpr size_t kWorkers = 2;

[[noreturn]] void report() {
  watching = false;
  std::cout << allocations << "\n";
  for (const Entered& entry : entered) {
    Dl_info info = {};
    if (entry.count == 0 || dladdr(entry.function, &info) == 0 || info.dli_sname == nullptr)
      continue;
    int status = 0;
    char* name = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::cout << (status == 0 ? name : info.dli_sname) << " " << entry.count << "\n";
  }
  std::cout.flush();
  _exit(0);
}

struct Case {
  std::string path, encoding, reply;
  uint64_t count;

  bool action() const { return path == "goals" || path == "goal-server"; }
  bool topic() const { return path == "send_all" || path == "publish" || path == "received"; }
  bool relays() const { return path == "relay"; }
  bool sends() const {
    return path != "received" && path != "serve" && path != "goal-server" && !relays();
  }
  bool closed() const { return path == "call_all"; }
};

std::string spec_text(const Case& c) {
  const int64_t count = static_cast<int64_t>(c.count);
  const char* role = c.relays()   ? "relay"
                     : c.topic()  ? (c.sends() ? "publisher" : "subscriber")
                     : c.action() ? (c.sends() ? "action_client" : "action_server")
                                  : (c.sends() ? "client" : "server");
  Object spec;
  for (const char* key : {"run", "cell", "payload.literal", "tls.authority", "tls.certificate",
                          "tls.key", "security.governance", "security.permissions"})
    spec.add(key, "");
  for (const char* key :
       {"index", "phase_ns", "count_beyond", "warmup_ns", "quiet_ms", "linger_ms", "spin_ns"})
    spec.add(key, 0);
  for (const char* key : {"overrun_ns", "timeout_ns"}) spec.add(key, int64_t{60000000000});
  for (const char* key :
       {"roles", "capabilities", "string_settings", "integer_settings", "boolean_settings"})
    spec.add(std::string("declared.") + key, std::vector<std::string>{});
  for (const char* key : {"payload_bytes_min", "payload_bytes_max", "record_bytes_max"})
    spec.add(std::string("declared.") + key, 0);
  spec.add("contract", kContract)
      .add("pattern", c.relays()   ? "pipeline"
                      : c.topic()  ? "topic"
                      : c.action() ? "action"
                                   : "service")
      .add("role", role)
      .add("node", c.sends() ? kSender : kReceiver)
      .add("peers.count", 1)
      .add("peers.endpoints", std::vector<std::string>{})
      .add("host.address", "127.0.0.1")
      .add("host.interface", "lo")
      .add("peers.addresses", std::vector<std::string>{})
      .add("loop", c.closed() ? "closed" : "open")
      .add("period_ns", c.closed() ? 0 : 1)
      .add("duration_ns", c.closed() ? 0 : count)
      .add("count", c.closed() ? count : 0)
      .add("outstanding_max", c.path == "calls" ? kWorkers : 1)
      .add("ready_timeout_ms", 1000)
      .add("pacing", "kit")
      .add("payload.bytes", kBytes)
      .add("payload.encoding", c.encoding)
      .add("payload.seed", 7)
      .add("reply", c.reply)
      .add("reply.literal", "a literal that exceeds the small-string buffer")
      .add("verify", "full")
      .add("action.feedback", 3)
      .add("record.capacity", 8 * c.count);
  if (c.relays()) spec.add("hop", 1);
  std::string text = spec.text();
  const std::string nodes = std::to_string(c.sends() ? kReceiver : kSender);
  return text.substr(0, text.size() - 1) + ", \"peers.nodes\": [" + nodes + "]}";
}

// The peer's checks and replies. Its constructor makes all allocations before the window.
class Peer {
 public:
  explicit Peer(const Case& c)
      : spec_(spec_text({c.path == "received" ? "send_all" : "serve", c.encoding, c.reply, 1}),
              "peer"),
        replies_(spec_) {
    Bytes reply = replies_.reply_to(Payload({kBytes, false, 7, "", true, true}, {1}).stamp(1, 1));
    (void)reply;  // the first reply with a record allocates its name, once per thread
  }
  Bytes answer(Bytes request) const { return replies_.reply_to(request); }

 private:
  Spec spec_;
  Replies replies_;
};

void send(Kit& kit, const Case& c) {
  const Peer peer(c);
  auto complete = [&](Slot* slot, Bytes buffer) {
    kit.accepted(slot);
    for (int64_t feedback = 0; feedback < kit.feedback_count(); ++feedback)
      kit.feedback(buffer, slot);
    kit.complete(slot, peer.answer(buffer));
  };
  auto wait = [](int64_t timeout_ns) {
    if (timeout_ns >= 100000000) report();  // the kit waits only for STOP
  };
  sleep_until_ns(kit.wait_go());  // before the start, an event loop waits as it does for STOP
  watching = true;
  uint64_t left = c.count;
  if (c.path == "send_all") kit.send_all([&](Bytes) { return --left > 0 || (report(), true); });
  if (c.path == "call_all")
    kit.call_all([&](Bytes buffer, int64_t) -> std::optional<Bytes> {
      if (--left == 0) report();
      return peer.answer(buffer);
    });
  if (c.path == "calls") {
    std::atomic<uint64_t> open{c.count};
    // The second call of each worker waits for that of the other. Otherwise the window could end
    // before the allocations in the first call of a thread that starts late.
    std::array<std::atomic<uint64_t>, kWorkers> begun{};
    kit.calls([&](size_t worker, Bytes buffer, int64_t) -> std::optional<Bytes> {
      if (++begun[worker] == 2)
        while (begun[0] < 2 || begun[1] < 2) std::this_thread::yield();
      if (--open == 0) report();
      return peer.answer(buffer);
    });
  }
  kit.drive(complete, wait);
}

void receive(Kit& kit, const Case& c) {
  Payload message({kBytes, c.encoding == "text", 7, "", true, c.encoding == "record"}, {kSender});
  sleep_until_ns(kit.wait_go());  // arrivals before the start could be probes
  watching = true;
  for (uint64_t counter = 0; counter < c.count; ++counter) {
    const Bytes data = message.stamp(kSender << 48 | counter, now_ns());
    if (c.path == "received") kit.received(data);
    if (c.path == "serve" && kit.serve(data)) kit.served();
    if (c.relays())
      if (const auto arrival = kit.relay(data))
        counter % 2 == 0 ? kit.relayed(*arrival) : kit.relay_failed(*arrival);
    if (c.path != "goal-server") continue;
    auto goal = kit.goal(data);
    kit.accept(*goal);
    for (int64_t feedback = 0; feedback < kit.feedback_count(); ++feedback) {
      kit.feedback_begin(*goal);
      kit.feedback_sent(*goal);
    }
    kit.result(*goal);
    kit.finish_goal(*goal);
  }
  report();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const Case c = {argv[1], argv[2], argv[3], std::strtoull(argv[4], nullptr, 10)};
  int input[2];
  if (pipe(input) != 0 || dup2(input[0], 0) < 0 || dup2(open("/dev/null", O_WRONLY), 3) < 0)
    return 1;
  const Spec spec(spec_text(c), "this test");
  Dialogue dialogue;
  Kit kit(spec, &dialogue, now_ns(), ".");
  dialogue.listen();
  const std::string go = "GO " + std::to_string(now_ns() + 200000000) + "\n";
  if (write(input[1], go.data(), go.size()) < 0) return 1;
  c.sends() ? send(kit, c) : receive(kit, c);
}
