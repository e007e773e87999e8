// What a cell calls: see languages/cpp/README.md for the whole API and its order.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dialogue.hpp"
#include "payload.hpp"
#include "recorder.hpp"
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
  int64_t discovery_ns = -1;  // -1: there is none
};

// One goal at the action server, with its own copy of the request.
struct Goal {
  uint64_t seq;
  int64_t begin_ns, feedback_ns;
  uint8_t flags;
  bool counted;  // false: a probe, or a sequence that cannot be read
  std::string data;
  Record record;
  bool is_record;

  Bytes payload() const { return is_record ? Bytes(record) : Bytes(data); }
};

class Kit {
 public:
  Kit(const Spec& spec, Dialogue* dialogue, int64_t process_start_ns)
      : spec_(spec),
        dialogue_(*dialogue),
        process_start_ns_(process_start_ns),
        sender_(is_sender(spec.string("role"))),
        payload_(shape(spec), sender_ ? std::vector<int64_t>{spec.integer("node")}
                                      : spec.integers("peers.nodes")),
        recorder_(static_cast<size_t>(spec.integer("record.capacity"))),
        schedule_(spec),
        kind_(spec.string("pattern") == "topic"    ? kMessage
              : spec.string("pattern") == "action" ? kResult
                                                   : kCall),
        peer_(spec.integers("peers.nodes").size() == 1
                  ? static_cast<uint16_t>(spec.integers("peers.nodes")[0])
                  : kUnknownPeer),
        reply_(spec.string("reply")),
        reply_literal_(spec.string("reply.literal")),
        timeout_ns_(spec.integer("timeout_ns")),
        spin_ns_(spec.integer("spin_ns")) {}

  const std::string& string(const std::string& key) const { return spec_.string(key); }
  int64_t integer(const std::string& key) const { return spec_.integer(key); }
  int64_t integer(const std::string& key, int64_t low, int64_t high) const {
    return spec_.integer(key, low, high);
  }
  bool boolean(const std::string& key) const { return spec_.boolean(key); }
  Names strings(const std::string& key) const { return spec_.strings(key); }
  std::vector<int64_t> integers(const std::string& key) const { return spec_.integers(key); }
  const Spec& spec() const { return spec_; }
  const std::string& encoding() const { return string("payload.encoding"); }
  bool text() const { return encoding() == "text"; }
  bool carries_seq() const { return payload_.carries_seq; }
  int64_t period_ns() const { return schedule_.period_ns; }
  int64_t feedback_count() const { return integer("action.feedback"); }

  // --- opening ---------------------------------------------------------------------------

  void listening(const Names& endpoints) {
    std::string list;
    for (const auto& endpoint : endpoints) list += (list.empty() ? "" : ", ") + quoted(endpoint);
    dialogue_.line("LISTENING", {{"endpoints", "[" + list + "]"}});
  }

  // Waits until count_now() reaches peers.count; returns the ns it took.
  template <class Count, class Poll>
  int64_t await_peers(Count count_now, Poll poll) {
    int64_t begin = now_ns();
    for (int64_t found; (found = static_cast<int64_t>(count_now())) < integer("peers.count");) {
      if (now_ns() > ready_deadline_ns())
        throw MiddlewareFailed(
            "matched " + std::to_string(found) + " of " + std::to_string(integer("peers.count")) +
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

  // Calls until a reply comes (C-07); returns the ns it took.
  template <class Call>
  int64_t probe(Call call) {
    int64_t begin = now_ns();
    std::string reason = "no reply";
    for (int64_t left; (left = ready_deadline_ns() - now_ns()) > 0; nap(5000000)) {
      current_seq_ = schedule_.node << 48 | kProbe;
      ++probes_;
      try {
        Bytes buffer = payload_.stamp(current_seq_, now_ns());
        if (call(buffer, std::min<int64_t>(left, 250000000))) return now_ns() - begin;
      } catch (const SendFailed& error) {  // not there yet
        reason = error.what();
      }
    }
    throw MiddlewareFailed("no probe was answered within ready_timeout_ms = " +
                           std::to_string(integer("ready_timeout_ms")) + ": " + reason);
  }

  void ready(const Ready& ready) {
    const Guarantee& g = ready.guarantee;
    if (!has({"best_effort", "at_most_once", "at_least_once", "exactly_once", "reliable"},
             g.delivery) ||
        !has({"none", "per_sender", "total"}, g.ordering) ||
        !has({"drop_newest", "drop_oldest", "block", "unbounded"}, g.overload))
      throw std::logic_error("guarantee: found " + g.delivery + ", " + g.ordering + ", " +
                             g.overload + "; allowed: the words of C-07");
    Fields effective;
    for (const auto& [name, value] : ready.effective) effective.emplace_back(name, value.json);
    auto or_null = [](int64_t value) { return value < 0 ? "null" : std::to_string(value); };
    dialogue_.line("READY", {{"matched", or_null(ready.matched)},
                             {"startup_ns", std::to_string(now_ns() - process_start_ns_)},
                             {"discovery_ns", or_null(ready.discovery_ns)},
                             {"library", object({{"name", quoted(ready.library.name)},
                                                 {"version", quoted(ready.library.version)},
                                                 {"build", quoted(ready.library.build)}})},
                             {"effective", object(effective)},
                             {"guarantee", object({{"delivery", quoted(g.delivery)},
                                                   {"ordering", quoted(g.ordering)},
                                                   {"overload", quoted(g.overload)}})}});
  }

  // --- schedule --------------------------------------------------------------------------

  // Returns the window's start, or 0 where STOP came first.
  int64_t wait_go() {
    dialogue_.wait_go_or_stop();
    Lock lock(mutex_);
    learn_start();
    return dialogue_.start_ns();
  }

  // Returns one period before the next slot: when a periodic timer must be created.
  void wait_timer_birth() {
    int64_t first = wait_go() + integer("phase_ns") - period_ns();
    int64_t behind = std::max<int64_t>(0, now_ns() - first);
    sleep_until(first + (behind + period_ns() - 1) / period_ns() * period_ns());
  }

  Slot* tick() {
    Lock lock(mutex_);
    int64_t now = now_ns();
    expire(now);
    const bool counted = schedule_.counted();
    Slot* slot = schedule_.tick(now, dialogue_.stopped());
    if (counted && slot != nullptr) dialogue_.line("COUNTED", {});
    return slot;
  }

  // Stamps the buffer for this slot; the next statement sends it.
  Bytes begin(Slot* slot) {
    Lock lock(mutex_);
    opened(slot, now_ns());
    return payload_.stamp(slot->seq, slot->begin_ns);
  }

  // The message was taken (topic), or its reply or result is in hand.
  void complete(Slot* slot, Bytes reply = {}) {
    int64_t end = now_ns();
    Lock lock(mutex_);
    if (!slot->open) return;
    if (kind_ == kMessage) {
      resolve(slot, end, 0);
    } else if (end - slot->begin_ns > timeout_ns_) {
      resolve(slot, kUnknownNs, kTimeout);
    } else {
      ++received_;
      resolve(slot, end, check_reply(slot->seq, reply));
    }
  }

  // The message was not taken, the goal was rejected, or the call failed (C-36).
  void fail(Slot* slot) {
    Lock lock(mutex_);
    if (!slot->open) return;
    sent_ -= kind_ == kMessage;  // a call was made, however it ended
    resolve(slot, kind_ == kMessage ? now_ns() : kUnknownNs, kFailed);
  }

  void accepted(Slot* slot) {
    int64_t end = now_ns();
    Lock lock(mutex_);
    if (!slot->open || slot->accepted) return;
    slot->accepted = true;
    record(*slot, end, kGoal, 0);
  }

  // True when the schedule is through and every message is resolved, or STOP came; a call beyond
  // the count may end after it (C-15).
  bool finished() {
    Lock lock(mutex_);
    int64_t now = now_ns();
    expire(now);
    bool through = schedule_.is_through(now, dialogue_.stopped()) && schedule_.none_open();
    return through || (dialogue_.stopped() && !schedule_.beyond());
  }

  // How long an event loop may wait before it must look at the schedule again.
  int64_t wait_ns() {
    Lock lock(mutex_);
    int64_t now = now_ns(), next = now + kNapNs;
    if (const Slot* slot = schedule_.oldest()) next = std::min(next, slot->begin_ns + timeout_ns_);
    if (!schedule_.through() && !schedule_.full() && !schedule_.native)
      next =
          std::min(next, schedule_.closed ? schedule_.start_ns() : schedule_.due_ns() - spin_ns_);
    return std::max<int64_t>(0, next - now);
  }

  template <class Begin, class Poll>
  void drive(Begin begin_call, Poll poll) {
    while (dialogue_.start_ns() == 0 && !dialogue_.stopped()) poll(int64_t{10000000});
    wait_go();
    while (!finished()) {
      Slot* slot = tick();
      if (slot == nullptr) {
        poll(wait_ns());
        continue;
      }
      try {
        begin_call(slot, begin(slot));
      } catch (const SendFailed&) {
        fail(slot);
      }
    }
    end_schedule(poll);
  }

  // `send`: bool(Bytes), false where the message was not taken.
  template <class Send>
  void send_all(Send send) {
    pace([&](Bytes buffer) -> std::optional<Bytes> {
      if (!send(buffer)) throw SendFailed("not taken");
      return Bytes();
    });
  }
  // `call`: std::optional<Bytes>(Bytes, int64_t timeout_ns), nothing at the timeout.
  template <class Call>
  void call_all(Call call) {
    pace([&](Bytes buffer) -> std::optional<Bytes> { return call(buffer, timeout_ns_); });
  }

  // How many calls may be open at once (C-33).
  size_t workers() const { return schedule_.open_max(); }

  // As call_all, with `call(worker, buffer, timeout_ns)` in `workers()` threads where that is more
  // than one: whoever is free takes the next message.
  template <class Call>
  void calls(Call call) {
    if (workers() == 1)
      return call_all(
          [&](Bytes buffer, int64_t timeout_ns) { return call(0, buffer, timeout_ns); });
    std::vector<std::thread> threads;
    for (size_t worker = 0; worker < workers(); ++worker)
      threads.emplace_back([this, worker, &call] { work(worker, call); });
    for (auto& thread : threads) thread.join();
    end_schedule();
  }

  // Prints SENT (C-14) and waits for STOP.
  void end_schedule() {
    print_sent();
    wait_stop();
  }
  template <class Poll>
  void end_schedule(Poll poll) {
    print_sent();
    wait_stop(poll);
  }
  void wait_stop() { dialogue_.wait_stop(); }
  template <class Poll>
  void wait_stop(Poll poll) {
    while (!dialogue_.stopped()) poll(kNapNs);
  }

  // --- arrivals --------------------------------------------------------------------------

  // A subscriber's callback was entered with this payload.
  void received(Bytes data) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    auto seen = arrive(data, now);
    if (seen && seen->counted)
      record(seen->seq, seen->begin_ns, now, data.size, kMessage, seen->flags);
  }

  // The reply to a request in hand; nothing where the request is foreign or unreadable.
  std::optional<Bytes> serve(Bytes data) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    auto seen = arrive(data, now);
    pending_.reset();
    if (!seen || data.is_unreadable()) return std::nullopt;
    if (seen->counted) pending_ = Pending{seen->seq, now, data.size, seen->flags};
    return reply_to(data);
  }

  // The reply of this thread's last `serve` was handed over.
  void served() {
    int64_t end = now_ns();
    if (!pending_) return;
    record(pending_->seq, pending_->begin_ns, end, pending_->bytes, kCall, pending_->flags);
    pending_.reset();
  }

  // Whether this may be the reply to the open blocking call; true where nobody can tell.
  bool is_reply(Bytes data) const {
    if (!carries_seq() || reply_ == "literal" || data.is_unreadable()) return true;
    if (data.record != nullptr) return data.record->seq == current_seq_;
    return data.part(0, ack_bytes()) == Bytes(payload_.header(current_seq_));
  }

  // An action client's feedback callback was entered. `slot` is the goal, which a payload too
  // short for a sequence (or a literal) cannot name.
  void feedback(Bytes data, const Slot* slot = nullptr) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    Checked seen = payload_.check(data);
    if (slot != nullptr && !carries_seq()) seen.seq = slot->seq;
    foreign_ += seen.verdict == Verdict::kForeign;
    corrupt_ += seen.verdict == Verdict::kCorrupt;
    if (seen.verdict != Verdict::kForeign && seen.seq && (*seen.seq & kCounterMask) != kProbe)
      record(*seen.seq, seen.begin_ns, now, data.size, kFeedback, flag(seen.verdict));
  }

  // --- action server ---------------------------------------------------------------------

  std::optional<Goal> goal(Bytes data) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    auto seen = arrive(data, now);
    if (!seen || data.is_unreadable()) return std::nullopt;
    const bool record = data.record != nullptr;
    return Goal{seen->seq,
                now,
                kUnknownNs,
                seen->flags,
                seen->counted,
                record ? std::string() : data.str(),
                record ? *data.record : Record(),
                record};
  }
  // The acceptance was handed over.
  void accept(const Goal& goal) { record(goal, goal.begin_ns, goal.payload().size, kAccept); }
  // The stamped feedback buffer; the next statement publishes it.
  Bytes feedback_begin(Goal& goal) {
    goal.feedback_ns = now_ns();
    return payload_.stamp(goal.seq, goal.feedback_ns);
  }
  void feedback_sent(const Goal& goal) {
    record(goal, goal.feedback_ns, payload_.length, kFeedback);
  }
  Bytes result(const Goal& goal) const { return reply_to(goal.payload()); }
  // The result was handed over.
  void finish_goal(const Goal& goal) { record(goal, goal.begin_ns, goal.payload().size, kGoal); }

  // --- the end ---------------------------------------------------------------------------

  // Drives a receiver's poll(timeout_ns) until STOP and then quiet or linger (C-15).
  template <class Poll>
  void poll(Poll poll) {
    for (int64_t left; (left = left_ns()) > 0;) poll(std::min(left, kNapNs));
  }
  // Blocks this thread until the end, while the library's own thread receives.
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

  // Writes the samples and prints DONE.
  void finish(const std::string& out) {
    Lock lock(mutex_);
    auto role = std::find(kRoles.begin(), kRoles.end(), string("role")) - kRoles.begin();
    recorder_.write(out + "/samples.bin", static_cast<uint8_t>(role),
                    static_cast<uint16_t>(schedule_.node),
                    static_cast<uint64_t>(integer("payload.seed")));
    dialogue_.line("DONE", {{"sent", std::to_string(sent_)},
                            {"received", std::to_string(received_)},
                            {"recorded", std::to_string(recorder_.recorded())},
                            {"overflow", std::to_string(recorder_.overflow())},
                            {"foreign", std::to_string(foreign_)},
                            {"corrupt", std::to_string(corrupt_)},
                            {"probes", std::to_string(probes_)}});
  }

 private:
  using Lock = std::lock_guard<std::mutex>;
  static constexpr int64_t kNapNs = 100000000;  // how long a wait may last before it looks for STOP

  struct Seen {
    bool counted;  // false: a probe, or a sequence that cannot be read
    uint64_t seq;
    int64_t begin_ns;
    uint8_t flags;
  };
  struct Outcome {
    int64_t end_ns;
    uint8_t flags;
  };
  struct Pending {
    uint64_t seq;
    int64_t begin_ns;
    size_t bytes;
    uint8_t flags;
  };

  static Payload::Shape shape(const Spec& spec) {
    return {static_cast<size_t>(spec.integer("payload.bytes")),
            spec.string("payload.encoding") == "text",
            static_cast<uint64_t>(spec.integer("payload.seed")),
            spec.string("payload.literal"),
            spec.string("verify") == "full",
            spec.string("payload.encoding") == "record"};
  }
  static void nap(int64_t ns) { sleep_until_ns(now_ns() + ns); }
  static uint8_t flag(Verdict verdict) { return verdict == Verdict::kCorrupt ? kCorruptFlag : 0; }
  size_t ack_bytes() const { return text() ? 16 : 8; }
  int64_t ready_deadline_ns() const {
    return process_start_ns_ + integer("ready_timeout_ms") * 1000000;
  }
  void learn_start() {
    if (!schedule_.started() && dialogue_.start_ns() != 0) schedule_.start(dialogue_.start_ns());
  }

  // False where STOP came first; else `now` is the clock's last reading, `due` or later.
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

  // The blocking schedule: one message at a time, each due at its slot. Nobody else touches the
  // schedule meanwhile, so there is no lock; the clock is read twice a message.
  template <class Call>
  void pace(Call call) {
    if (schedule_.native)
      throw std::logic_error("a blocking sender cannot be paced by a middleware's timer");
    wait_go();
    int64_t now = 0;
    while (!schedule_.is_through(now, dialogue_.stopped())) {
      if (!sleep_until(schedule_.closed ? schedule_.start_ns() : schedule_.due_ns(), now)) break;
      if (now > schedule_.last_ns()) break;
      if (schedule_.counted()) {
        dialogue_.line("COUNTED", {});
        now = now_ns();
      }
      Slot slot = schedule_.take();
      slot.begin_ns = now;
      if (schedule_.closed) slot.intended_ns = slot.begin_ns;
      if (first_begin_ns_ == kUnknownNs) first_begin_ns_ = slot.begin_ns;
      current_seq_ = slot.seq;
      Outcome outcome = {now, kFailed};
      try {
        outcome = outcome_of(slot, call(payload_.stamp(slot.seq, slot.begin_ns)));
        ++sent_;
      } catch (const SendFailed&) {
        outcome.end_ns = kind_ == kMessage ? now_ns() : kUnknownNs;
        sent_ += kind_ != kMessage;  // a call was made, however it ended
      }
      last_end_ns_ = outcome.end_ns == kUnknownNs ? now_ns() : outcome.end_ns;
      record(slot, outcome.end_ns, kind_, outcome.flags);
    }
    end_schedule();
  }

  // One of the threads of `calls`.
  template <class Call>
  void work(size_t worker, Call& call) {
    Payload payload = payload_;  // each thread stamps its own buffer
    wait_go();
    try {
      while (Slot* slot = claim()) {
        int64_t now = 0;
        if (!sleep_until(slot->intended_ns, now) || now > schedule_.last_ns()) break;
        {
          Lock lock(mutex_);
          opened(slot, now_ns());
        }
        try {
          std::optional<Bytes> reply =
              call(worker, payload.stamp(slot->seq, slot->begin_ns), timeout_ns_);
          reply ? complete(slot, *reply) : time_out(slot);
        } catch (const SendFailed&) {
          fail(slot);
        }
      }
    } catch (const std::exception& error) {
      dialogue_.fail(4, {}, error.what());
    }
  }

  // The next message of the schedule, for the thread that will wait until it is due.
  Slot* claim() {
    Lock lock(mutex_);
    return schedule_.is_through(now_ns(), dialogue_.stopped()) ? nullptr : schedule_.claim();
  }

  void opened(Slot* slot, int64_t begin_ns) {
    schedule_.opened(slot);
    ++sent_;
    slot->begin_ns = begin_ns;
    if (schedule_.closed) slot->intended_ns = slot->begin_ns;
    if (first_begin_ns_ == kUnknownNs) first_begin_ns_ = slot->begin_ns;
  }

  void time_out(Slot* slot) {
    Lock lock(mutex_);
    if (slot->open) resolve(slot, kUnknownNs, kTimeout);
  }

  Outcome outcome_of(const Slot& slot, const std::optional<Bytes>& reply) {
    int64_t end = now_ns();
    if (kind_ == kMessage) return {end, 0};
    if (!reply || end - slot.begin_ns > timeout_ns_) return {kUnknownNs, kTimeout};
    ++received_;
    return {end, check_reply(slot.seq, *reply)};
  }

  void print_sent() {
    Lock lock(mutex_);
    while (Slot* slot = schedule_.oldest()) resolve(slot, kUnknownNs, kTimeout);
    auto or_null = [](int64_t v) { return v == kUnknownNs ? "null" : std::to_string(v); };
    dialogue_.line("SENT", {{"begin_ns", or_null(first_begin_ns_)},
                            {"end_ns", or_null(last_end_ns_)},
                            {"sent", std::to_string(sent_)},
                            {"scheduled", std::to_string(schedule_.scheduled())},
                            {"skipped", std::to_string(schedule_.skipped())}});
  }

  void resolve(Slot* slot, int64_t end, uint8_t flags) {
    schedule_.resolved(slot);
    last_end_ns_ = end == kUnknownNs ? now_ns() : end;
    if (kind_ == kResult && !slot->accepted && (flags & (kFailed | kTimeout)) != 0)
      record(*slot, kUnknownNs, kGoal, flags);
    record(*slot, end, kind_, flags);
  }

  void expire(int64_t now) {
    for (Slot* slot; (slot = schedule_.oldest()) && now - slot->begin_ns >= timeout_ns_;)
      resolve(slot, kUnknownNs, kTimeout);
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
  void record(const Goal& goal, int64_t begin, size_t bytes, Kind kind) {
    int64_t end = now_ns();
    if (goal.counted) record(goal.seq, begin, end, bytes, kind, goal.flags);
  }

  // Nothing: foreign.
  std::optional<Seen> arrive(const Bytes& data, int64_t now) {
    learn_start();
    if (!carries_seq() && now < schedule_.start_ns()) {
      ++probes_;  // nothing but a probe comes before the start
      return Seen{false, 0, kUnknownNs, 0};
    }
    Checked seen = payload_.check(data);
    if (seen.verdict == Verdict::kForeign) {
      ++foreign_;
      return std::nullopt;
    }
    if (carries_seq() && seen.seq && (*seen.seq & kCounterMask) == kProbe) {
      ++probes_;
      return Seen{false, *seen.seq, kUnknownNs, 0};
    }
    arrival_ns_ = now;
    corrupt_ += seen.verdict == Verdict::kCorrupt;
    received_ += seen.seq.has_value();
    return Seen{seen.seq.has_value(), seen.seq.value_or(0), seen.begin_ns, flag(seen.verdict)};
  }

  Bytes reply_to(Bytes data) const {
    if (reply_ == "echo") return data;
    if (data.record != nullptr) {
      thread_local Record made;  // stays until this thread's next reply
      made = record_answer(data.record->seq, data.record->send_ns, data.record->trailer_seq);
      return made;
    }
    return reply_ == "ack" ? data.part(0, ack_bytes()) : Bytes(reply_literal_);
  }

  uint8_t check_reply(uint64_t seq, Bytes reply) {
    bool good = false;
    if (reply_ == "echo" && carries_seq()) {
      Checked seen = payload_.check(reply);
      good = seen.verdict == Verdict::kOk && seen.seq == seq;
    } else if (encoding() == "record") {
      good = reply.record != nullptr && !reply.is_unreadable() && is_answer(seq, *reply.record);
    } else if (reply_ == "literal") {
      good = reply == Bytes(reply_literal_);
    } else {
      // Without a whole sequence there is no send time either: all bytes are known.
      std::string header = payload_.header(seq);
      Bytes sent = payload_.literal.empty() ? Bytes(header).part(0, payload_.length)
                                            : Bytes(payload_.literal);
      good = reply == (reply_ == "echo" ? sent : sent.part(0, ack_bytes()));
    }
    corrupt_ += !good;
    return good ? 0 : kCorruptFlag;
  }

  // The record that answers another by `ack` or `literal`.
  Record record_answer(uint64_t seq, int64_t send_ns, uint64_t trailer_seq) const {
    Record out;
    if (reply_ == "literal") {
      out.name = reply_literal_;
      return out;
    }
    out.seq = seq;
    out.send_ns = send_ns;
    out.trailer_seq = trailer_seq;
    return out;
  }
  bool is_answer(uint64_t seq, const Record& reply) const {
    // The send time is not compared, as it is not in an echo: the next call restamps it.
    const Record due = record_answer(seq, reply.send_ns, seq);
    return reply.seq == due.seq && reply.send_ns == due.send_ns &&
           reply.trailer_seq == due.trailer_seq && reply.same_body(due);
  }

  int64_t left_ns() {
    int64_t stop = dialogue_.stop_ns();
    if (stop == 0) return kNapNs;
    Lock lock(mutex_);
    int64_t quiet = std::max(arrival_ns_, stop) + integer("quiet_ms") * 1000000;
    return std::min(quiet, stop + integer("linger_ms") * 1000000) - now_ns();
  }

  const Spec& spec_;
  Dialogue& dialogue_;
  const int64_t process_start_ns_;
  const bool sender_;
  Payload payload_;
  Recorder recorder_;
  Schedule schedule_;
  const Kind kind_;
  const uint16_t peer_;
  const std::string reply_, reply_literal_;
  const int64_t timeout_ns_, spin_ns_;
  std::mutex mutex_;
  inline static thread_local std::optional<Pending> pending_;
  uint64_t current_seq_ = 0;
  int64_t first_begin_ns_ = kUnknownNs, last_end_ns_ = kUnknownNs, arrival_ns_ = 0;
  uint64_t sent_ = 0, received_ = 0, foreign_ = 0, corrupt_ = 0, probes_ = 0;
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
  const std::string role = spec.string("role");
  Names roles;
  for (const auto& entry : cell.roles) roles.push_back(entry.first);
  if (!has(roles, role)) throw Unsupported("role " + role + "; this cell has " + join(roles));
  Names wanted = {"encoding." + spec.string("payload.encoding"), "loop." + spec.string("loop")};
  if (is_sender(role)) wanted.push_back("pacing." + spec.string("pacing"));
  if (spec.string("pattern") != "topic") wanted.push_back("reply." + spec.string("reply"));
  if (!spec.string("payload.literal").empty()) wanted.push_back("literal");
  if (!spec.string("tls.authority").empty()) wanted.push_back("tls");
  if (has({"client", "ping"}, role) && spec.string("loop") == "open" &&
      spec.integer("outstanding_max") > 1)
    wanted.push_back("async_client");
  for (const auto& name : wanted)
    if (!has(cell.capabilities, name))
      throw Unsupported(name + "; this cell has " + join(cell.capabilities));
  for (const auto& [name, values] : cell.values)
    if (const std::string& found = spec.at("settings." + name).source; !has(values, found))
      throw Unsupported("settings." + name + " " + found + "; this cell has " + join(values));
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
