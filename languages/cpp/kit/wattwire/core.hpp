// Functions for all roles: the spec, the lines before and after the window, arrivals and records.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "dialogue.hpp"
#include "payload.hpp"
#include "recorder.hpp"
#include "replies.hpp"
#include "schedule.hpp"
#include "spec.hpp"

namespace wattwire {

struct Library {
  std::string name, version, build;
};
struct Guarantee {
  std::string delivery, ordering, overload;
};
struct Ready {
  int64_t matched = -1;  // -1: the middleware cannot tell
  Library library;
  std::map<std::string, Scalar> effective;
  Guarantee guarantee;
  int64_t discovery_ns = -1;  // -1: the middleware has no discovery
  std::vector<Object> parts;  // the entries of a member's parts (`Core::entry`)
};

// The counts of DONE.
struct Counts {
  uint64_t sent = 0, received = 0, recorded = 0, overflow = 0, foreign = 0, corrupt = 0, probes = 0;

  Counts& operator+=(const Counts& other) {
    sent += other.sent;
    received += other.received;
    recorded += other.recorded;
    overflow += other.overflow;
    foreign += other.foreign;
    corrupt += other.corrupt;
    probes += other.probes;
    return *this;
  }
};

// A message from its arrival at a relay until the relay's send call has returned.
struct Relay {
  uint64_t seq;
  int64_t entered_ns, begin_ns;
  size_t bytes;
  uint8_t flags;
  bool probe, counted;  // counted: not a probe, and the sequence is readable
};

class Core {
 public:
  Core(const Spec& spec, Dialogue* dialogue, int64_t process_start_ns, std::string out)
      : spec_(spec),
        dialogue_(*dialogue),
        out_(std::move(out)),
        process_start_ns_(process_start_ns),
        role_(role_of(spec)),
        sender_(role_.sends),
        payload_(shape(spec), sender_ ? std::vector<int64_t>{spec.integer("node")}
                                      : spec.integers("peers.nodes")),
        recorder_(static_cast<size_t>(spec.integer("record.capacity"))),
        schedule_(spec),
        replies_(spec),
        kind_(kind_of(spec.string("pattern"))),
        peer_(spec.integers("peers.nodes").size() == 1
                  ? static_cast<uint16_t>(spec.integers("peers.nodes")[0])
                  : kUnknownPeer),
        timeout_ns_(spec.integer("timeout_ns")),
        spin_ns_(spec.integer("spin_ns")),
        quiet_ns_(spec.integer("quiet_ms") * 1000000),
        linger_ns_(spec.integer("linger_ms") * 1000000) {}
  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const std::string& string(std::string_view key) const { return spec_.string(key); }
  int64_t integer(std::string_view key) const { return spec_.integer(key); }
  int64_t integer(std::string_view key, int64_t low, int64_t high) const {
    return spec_.integer(key, low, high);
  }
  bool boolean(std::string_view key) const { return spec_.boolean(key); }
  Names strings(std::string_view key) const { return spec_.strings(key); }
  std::vector<int64_t> integers(std::string_view key) const { return spec_.integers(key); }
  const Spec& spec() const { return spec_; }
  // Returns the node's output folder, for libraries that write files.
  const std::string& out() const { return out_; }
  const std::string& encoding() const { return string("payload.encoding"); }
  bool text() const { return encoding() == "text"; }
  bool carries_seq() const { return payload_.carries_seq; }

  // Return the name of the topic on which this node sends or receives: `topic`, or `channel_K` for
  // channel K of a pipeline. Middlewares that name their topics insert the run token (C-18).
  std::string sending_topic() const { return topic(1); }
  std::string receiving_topic() const { return topic(0); }

  // --- opening ---------------------------------------------------------------------------

  void listening(const Names& endpoints) {
    dialogue_.line("LISTENING", Object().add("endpoints", endpoints));
  }

  // Waits until count_now() reaches peers.count; returns the duration in ns.
  template <class Count, class Poll>
  int64_t await_peers(Count count_now, Poll poll) {
    int64_t begin = now_ns();
    for (int64_t matched; (matched = static_cast<int64_t>(count_now())) < integer("peers.count");) {
      if (now_ns() > ready_deadline_ns())
        throw MiddlewareFailed(
            "matched " + std::to_string(matched) + " of " + std::to_string(integer("peers.count")) +
            " peers within ready_timeout_ms = " + std::to_string(integer("ready_timeout_ms")) +
            "; are they running?");
      poll(int64_t{1000000});
    }
    return now_ns() - begin;
  }
  template <class Count>
  int64_t await_peers(Count count_now) {
    return await_peers(count_now, nap);
  }

  // Calls until a reply arrives (C-07); returns the duration in ns.
  template <class Call>
  int64_t probe(Call call) {
    int64_t begin = now_ns();
    std::string reason = "no reply";
    for (int64_t left; (left = ready_deadline_ns() - now_ns()) > 0; nap(5000000)) {
      current_seq_ = schedule_.node << 48 | kProbe;
      ++probes_;
      try {
        current_begin_ns_ = now_ns();
        Bytes buffer = payload_.stamp(current_seq_, current_begin_ns_);
        if (call(buffer, std::min<int64_t>(left, 250000000))) return now_ns() - begin;
      } catch (const SendFailed& error) {  // the server is not ready yet
        reason = error.what();
      }
    }
    throw MiddlewareFailed("no reply to a probe within ready_timeout_ms = " +
                           std::to_string(integer("ready_timeout_ms")) + ": " + reason);
  }

  void ready(const Ready& ready) {
    const Guarantee& g = ready.guarantee;
    if (!is_word(kDeliveryWords, g.delivery) || !is_word(kOrderingWords, g.ordering) ||
        !is_word(kOverloadWords, g.overload))
      throw std::logic_error("guarantee: found " + g.delivery + ", " + g.ordering + ", " +
                             g.overload + "; allowed: the values of C-07");
    Object library, effective, guarantee, line;
    library.add("name", ready.library.name)
        .add("version", ready.library.version)
        .add("build", ready.library.build);
    effective.add(in_force(ready.effective));
    guarantee.add("delivery", g.delivery).add("ordering", g.ordering).add("overload", g.overload);
    line.add("matched", Scalar::known(ready.matched, -1))
        .add("startup_ns", now_ns() - process_start_ns_)
        .add("discovery_ns", Scalar::known(ready.discovery_ns, -1))
        .add("library", library)
        .add("effective", effective)
        .add("guarantee", guarantee);
    if (!ready.parts.empty()) line.add("parts", ready.parts);
    dialogue_.line("READY", line);
  }

  // Returns the entry of this part of a member in READY (C-42).
  Object entry(int64_t matched, const std::map<std::string, Scalar>& effective) const {
    return Object()
        .add("node", integer("node"))
        .add("matched", Scalar::known(matched, -1))
        .add("effective", in_force(effective));
  }

  // --- arrivals --------------------------------------------------------------------------

  // Records an arrival; first statement of a subscriber's callback.
  void received(Bytes data) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    auto arrival = arrive(data, now);
    if (arrival && arrival->counted)
      record(arrival->seq, arrival->begin_ns, now, data.size, kMessage, arrival->flags);
  }

  // Checks an arrival; first statement of a relay's callback. The next statement must send the
  // arrival unchanged, unless the result is nullopt, which means that it is foreign.
  std::optional<Relay> relay(Bytes data) {
    const int64_t entered_ns = now_ns();
    Lock lock(mutex_);
    const auto arrival = arrive(data, entered_ns);
    if (!arrival) return std::nullopt;
    return Relay{arrival->seq,   entered_ns,     now_ns(),        data.size,
                 arrival->flags, arrival->probe, arrival->counted};
  }

  // Records that the relay's send call has returned without an error.
  void relayed(const Relay& message) {
    const int64_t end = now_ns();
    Lock lock(mutex_);
    sent_ += !message.probe;
    record(message, end, message.flags);
  }

  // Records that the relay could not send the message.
  void relay_failed(const Relay& message) {
    record(message, kUnknownNs, static_cast<uint8_t>(message.flags | kFailed));
  }

  // Returns the reply to a request, or nullopt if the request is foreign or unreadable.
  std::optional<Bytes> serve(Bytes data) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    auto arrival = arrive(data, now);
    pending_.reset();
    if (!arrival || data.is_unreadable()) return std::nullopt;
    if (arrival->counted) pending_ = Pending{arrival->seq, now, data.size, arrival->flags};
    return replies_.reply_to(data);
  }

  // Records that the reply of this thread's last `serve` was handed over.
  void served() {
    int64_t end = now_ns();
    if (!pending_) return;
    record(pending_->seq, pending_->begin_ns, end, pending_->bytes, kCall, pending_->flags);
    pending_.reset();
  }

  // Returns the begin of the open blocking call or probe, which is the start of its timeout.
  int64_t call_begin_ns() const { return current_begin_ns_; }
  // Returns whether this may be the reply to the open blocking call; true if it cannot be decided.
  bool is_reply(Bytes data) const { return replies_.may_be(current_seq_, data, payload_); }

  // --- the end ---------------------------------------------------------------------------

  // Declares that this server's requests are answered outside of this process (C-34).
  void keep_no_records() { keeps_records_ = false; }

  void wait_stop() { dialogue_.wait_stop(); }
  template <class Poll>
  void wait_stop(Poll poll) {
    while (!dialogue_.stopped()) poll(kNapNs);
  }
  // Calls poll_once(timeout_ns) until STOP, and then until quiet or linger (C-15).
  template <class Poll>
  void poll(Poll poll_once) {
    for (int64_t left; (left = left_ns()) > 0;) poll_once(std::min(left, kNapNs));
  }
  // Blocks this thread until the end, while a thread of the library receives.
  void wait() {
    dialogue_.wait_stop();
    poll(nap);
  }
  void on_end(std::function<void()> function) {
    std::thread([this, function = std::move(function)] {
      wait();
      function();
    }).detach();
  }

  // Ends the process if the library hangs after STOP, for example in its shutdown. The samples are
  // complete, because the roles end by themselves before this limit.
  void limit_end() {
    const int64_t calls_ns = sender_ ? timeout_ns_ : 0;
    dialogue_.limit_end(linger_ns_ + calls_ns + kShutdownNs, [this] {
      std::fputs("the middleware hung after STOP; the node ended without its shutdown\n", stderr);
      finish();
      _exit(0);
    });
  }

  // Writes the samples and prints DONE, once.
  virtual void finish() {
    std::call_once(finished_, [this] { dialogue_.line("DONE", fields(write("samples.bin"))); });
  }

 protected:
  using Lock = std::lock_guard<std::mutex>;
  static constexpr int64_t kNapNs = 100000000;  // maximum wait between two checks for STOP
  // Below the 5 s for which the harness waits for DONE.
  static constexpr int64_t kShutdownNs = 4000000000;

  struct Arrival {
    bool counted;  // false: a probe, or a sequence that cannot be read
    uint64_t seq;
    int64_t begin_ns;
    uint8_t flags;
    bool probe = false;
  };

  // Writes the samples to a file of this name, and returns the counts.
  Counts write(const std::string& name) {
    Lock lock(mutex_);
    recorder_.write(out_ + "/" + name, role_.code, static_cast<uint16_t>(schedule_.node),
                    static_cast<uint64_t>(integer("payload.seed")));
    return {sent_,    received_, recorder_.recorded(), recorder_.overflow(), foreign_,
            corrupt_, probes_};
  }

  // Returns the fields of DONE.
  Object fields(const Counts& counts) const {
    return Object()
        .add("sent", counts.sent)
        .add("received", unless_unrecorded(counts.received))
        .add("recorded", counts.recorded)
        .add("overflow", counts.overflow)
        .add("foreign", unless_unrecorded(counts.foreign))
        .add("corrupt", unless_unrecorded(counts.corrupt))
        .add("probes", counts.probes);
  }

  // Returns the time of the last arrival; 0 without one.
  virtual int64_t last_arrival_ns() {
    Lock lock(mutex_);
    return arrival_ns_;
  }

  static uint8_t flag(Verdict verdict) { return verdict == Verdict::kCorrupt ? kCorrupt : 0; }

  void learn_start() {
    if (!schedule_.started() && dialogue_.start_ns() != 0) schedule_.start(dialogue_.start_ns());
  }

  // Returns false if STOP arrived first. Otherwise sets `now` to a reading of the clock, at or
  // after `due`.
  bool sleep_until(int64_t due, int64_t& now) const {
    while (!dialogue_.stopped()) {
      now = now_ns();
      if (now >= due - spin_ns_) {
        while (now < due) now = now_ns();
        return true;
      }
      sleep_until_ns(std::min(due - spin_ns_, now + 1000000000));
    }
    return false;
  }
  bool sleep_until(int64_t due) const {
    int64_t now;
    return sleep_until(due, now);
  }

  // Checks and counts an arrival. Returns nullopt if it is foreign.
  std::optional<Arrival> arrive(const Bytes& data, int64_t now) {
    learn_start();
    if (!carries_seq() && now < schedule_.start_ns()) {
      ++probes_;  // only probes arrive before the start
      return Arrival{false, 0, kUnknownNs, 0, true};
    }
    Checked arrival = payload_.check(data);
    if (arrival.verdict == Verdict::kForeign) {
      ++foreign_;
      return std::nullopt;
    }
    if (carries_seq() && arrival.seq && (*arrival.seq & kCounterMask) == kProbe) {
      ++probes_;
      return Arrival{false, *arrival.seq, kUnknownNs, 0, true};
    }
    arrival_ns_ = now;
    corrupt_ += arrival.verdict == Verdict::kCorrupt;
    received_ += arrival.seq.has_value();
    return Arrival{arrival.seq.has_value(), arrival.seq.value_or(0), arrival.begin_ns,
                   flag(arrival.verdict)};
  }

  // Returns the flags of a reply, and counts it if it is corrupt.
  uint8_t check_reply(uint64_t seq, Bytes reply) {
    const bool right = replies_.is_right(seq, reply, &payload_);
    corrupt_ += !right;
    return right ? 0 : kCorrupt;
  }

  void record(const Slot& slot, int64_t end, Kind kind, uint8_t flags) {
    if (slot.intended_ns < schedule_.warm_until_ns()) flags |= kWarmUp;
    recorder_.add({slot.seq, slot.intended_ns, slot.begin_ns, end,
                   static_cast<uint32_t>(payload_.length), peer_, kind, flags});
  }
  void record(uint64_t seq, int64_t begin, int64_t end, size_t bytes, Kind kind, uint8_t flags) {
    if (end < schedule_.warm_until_ns()) flags |= kWarmUp;
    recorder_.add({seq, kUnknownNs, begin, end, static_cast<uint32_t>(bytes),
                   sender_ ? peer_ : static_cast<uint16_t>(seq >> 48), kind, flags});
  }
  void record(const Relay& message, int64_t end, uint8_t flags) {
    if (!message.counted) return;
    if (message.entered_ns < schedule_.warm_until_ns()) flags |= kWarmUp;
    recorder_.add({message.seq, message.entered_ns, message.begin_ns, end,
                   static_cast<uint32_t>(message.bytes), static_cast<uint16_t>(message.seq >> 48),
                   Kind::kRelay, flags});
  }

  const Spec& spec_;
  Dialogue& dialogue_;
  const std::string out_;
  const int64_t process_start_ns_;
  const Role& role_;
  const bool sender_;
  Payload payload_;
  Recorder recorder_;
  Schedule schedule_;
  const Replies replies_;
  const Kind kind_;
  const uint16_t peer_;
  const int64_t timeout_ns_, spin_ns_, quiet_ns_, linger_ns_;
  std::mutex mutex_;
  std::once_flag finished_;
  uint64_t current_seq_ = 0;
  int64_t current_begin_ns_ = 0, arrival_ns_ = 0;
  bool keeps_records_ = true;
  uint64_t sent_ = 0, received_ = 0, foreign_ = 0, corrupt_ = 0, probes_ = 0;

 private:
  struct Pending {
    uint64_t seq;
    int64_t begin_ns;
    size_t bytes;
    uint8_t flags;
  };

  // Returns the settings with their requested values.
  std::map<std::string, Scalar> requested() const {
    std::map<std::string, Scalar> out;
    for (const auto& name : spec_.settings()) out[name].json = spec_.at(kSetting + name).source;
    return out;
  }
  // Returns the settings, with the values that the library reports.
  Object in_force(const std::map<std::string, Scalar>& reported) const {
    Object effective;
    auto known = requested();
    for (const auto& [name, value] : reported) known[name] = value;
    for (const auto& [name, value] : known) effective.add(name, value);
    return effective;
  }
  static Kind kind_of(const std::string& pattern) {
    if (pattern == "topic" || pattern == "pipeline") return kMessage;
    return pattern == "action" ? kResult : kCall;
  }
  static Payload::Shape shape(const Spec& spec) {
    return {static_cast<size_t>(spec.integer("payload.bytes")),
            spec.string("payload.encoding") == "text",
            static_cast<uint64_t>(spec.integer("payload.seed")),
            spec.string("payload.literal"),
            spec.string("verify") == "full",
            spec.string("payload.encoding") == "record"};
  }
  template <size_t kCount>
  static bool is_word(const char* const (&words)[kCount], const std::string& word) {
    return std::find(words, words + kCount, word) != words + kCount;
  }
  std::string topic(int64_t hops) const {
    if (string("pattern") != "pipeline") return "topic";
    return "channel_" + std::to_string(integer("hop") + hops);
  }
  Scalar unless_unrecorded(uint64_t count) const { return keeps_records_ ? count : Scalar(); }
  static void nap(int64_t ns) { sleep_until_ns(now_ns() + ns); }
  int64_t ready_deadline_ns() const {
    return process_start_ns_ + integer("ready_timeout_ms") * 1000000;
  }

  int64_t left_ns() {
    int64_t stop = dialogue_.stop_ns();
    if (stop == 0) return kNapNs;
    const int64_t quiet = std::max(last_arrival_ns(), stop) + quiet_ns_;
    return std::min(quiet, stop + linger_ns_) - now_ns();
  }

  inline static thread_local std::optional<Pending> pending_;
};

}  // namespace wattwire
