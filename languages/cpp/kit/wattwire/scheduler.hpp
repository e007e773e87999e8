// Two front ends for a sender's schedule: `tick` and `drive` for event loops, and the blocking
// functions `send_all`, `call_all` and `calls`. Both use `due`, `open` and `close`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core.hpp"

namespace wattwire {

class Scheduler : public Core {
 public:
  using Core::Core;

  int64_t period_ns() const { return schedule_.period_ns; }

  // Waits for GO; returns the window's start, or 0 if STOP arrived first.
  int64_t wait_go() {
    dialogue_.wait_go_or_stop();
    Lock lock(mutex_);
    learn_start();
    return dialogue_.start_ns();
  }

  // Blocks until one period before the next slot, when the cell must create its periodic timer.
  void wait_timer_birth() {
    const int64_t first_due_ns = wait_go() + integer("phase_ns");
    sleep_until(native_timer::birth_ns(first_due_ns, period_ns(), now_ns()));
  }

  // --- front end of event loops ------------------------------------------------------------

  // Returns the message that is due now, or null.
  Slot* tick() {
    Lock lock(mutex_);
    int64_t now = now_ns();
    expire(now);
    return due(now);
  }

  // Stamps the buffer for this slot; the next statement must send it.
  Bytes begin(Slot* slot) {
    Lock lock(mutex_);
    return open(slot, now_ns(), &payload_);
  }

  // Ends a message that was sent (topic) or whose reply or result has arrived.
  void complete(Slot* slot, Bytes reply = {}) {
    const int64_t end = now_ns();
    Lock lock(mutex_);
    end_well(slot, end, reply);
  }

  // Ends a message that was not sent, a rejected goal, or a failed call (C-36).
  void fail(Slot* slot) {
    Lock lock(mutex_);
    end_failed(slot);
  }

  // Returns whether the schedule has ended and every message is resolved, or STOP has arrived. A
  // call beyond the count may end after STOP (C-15).
  bool finished() {
    Lock lock(mutex_);
    const int64_t now = now_ns();
    expire(now);
    return ended(now);
  }

  // Returns the maximum time in ns that an event loop may wait before it checks the schedule again.
  int64_t wait_ns() {
    Lock lock(mutex_);
    return wait_from(now_ns());
  }

  template <class Begin, class Poll>
  void drive(Begin begin_call, Poll poll) {
    while (dialogue_.start_ns() == 0 && !dialogue_.stopped()) poll(kGoLookNs);
    wait_go();
    for (;;) {
      const Turn turn = next_turn();
      if (turn.ended) break;
      if (turn.slot == nullptr) {
        poll(turn.wait_ns);
        continue;
      }
      try {
        begin_call(turn.slot, turn.buffer);
      } catch (const SendFailed&) {
        fail(turn.slot);
      }
    }
    end_schedule(poll);
  }

  // --- blocking front end ------------------------------------------------------------------

  // `send` is bool(Bytes) and returns false if the message was not sent.
  template <class Send>
  void send_all(Send send) {
    send_blocking([&](Slot* slot, Bytes buffer) {
      send(buffer) ? end_well(slot, now_ns(), {}) : end_failed(slot);
    });
  }

  // `call` is std::optional<Bytes>(Bytes, int64_t timeout_ns) and returns nullopt at the timeout.
  template <class Call>
  void call_all(Call call) {
    send_blocking([&](Slot* slot, Bytes buffer) {
      const std::optional<Bytes> reply = call(buffer, timeout_ns_);
      reply ? end_well(slot, now_ns(), *reply) : close(slot, kUnknownNs, kTimeout);
    });
  }

  // Returns the maximum number of concurrent calls (C-33).
  size_t workers() const { return schedule_.open_max(); }

  // Works like call_all, but runs `call(worker, buffer, timeout_ns)` in `workers()` threads. A free
  // worker takes the next message.
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

  // --- end of both front ends --------------------------------------------------------------

  // The result of a schedule: the fields of SENT.
  struct Sent {
    int64_t begin_ns = kUnknownNs, end_ns = kUnknownNs;
    uint64_t sent = 0;
    int64_t scheduled = 0, skipped = 0;

    Object fields() const {
      return Object()
          .add("begin_ns", Scalar::known(begin_ns, kUnknownNs))
          .add("end_ns", Scalar::known(end_ns, kUnknownNs))
          .add("sent", sent)
          .add("scheduled", scheduled)
          .add("skipped", skipped);
    }
  };

  // Returns the result of the schedule. Calls that are still open have timed out.
  Sent sent() {
    Lock lock(mutex_);
    while (Slot* slot = schedule_.oldest()) close(slot, kUnknownNs, kTimeout);
    return {first_begin_ns_, last_end_ns_, sent_, schedule_.scheduled(), schedule_.skipped()};
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

 protected:
  static constexpr int64_t kGoLookNs = 10000000;  // C-08

 private:
  // The next action of an event loop: end, send `buffer`, or wait.
  struct Turn {
    bool ended;
    Slot* slot;
    Bytes buffer;
    int64_t wait_ns;
  };

  Turn next_turn() {
    Lock lock(mutex_);
    int64_t now = now_ns();
    expire(now);
    if (ended(now)) return {true, nullptr, {}, 0};
    if (Slot* slot = due(now)) return {false, slot, open(slot, now, &payload_), 0};
    return {false, nullptr, {}, wait_from(now)};
  }

  // Sends in this thread. No other thread uses the schedule meanwhile, so it needs no lock. Reads
  // the clock twice per message.
  template <class Act>
  void send_blocking(Act act) {
    if (schedule_.native)
      throw std::logic_error("a middleware's timer cannot pace a blocking sender");
    wait_go();
    Slot slot;
    int64_t now = 0;
    while (take_next(&slot, now) && await_due(slot, now)) {
      const Bytes buffer = open(&slot, now, &payload_);
      try {
        act(&slot, buffer);
      } catch (const SendFailed&) {
        end_failed(&slot);
      }
    }
    end_schedule();
  }

  // Runs a worker thread of `calls`.
  template <class Call>
  void work(size_t worker, Call& call) try {
    Payload payload = payload_;  // each thread stamps its own buffer
    wait_go();
    Slot slot;
    int64_t now = 0;
    while (locked([&] { return take_next(&slot, now); }) && await_due(slot, now)) {
      const Bytes buffer = locked([&] { return open(&slot, now_ns(), &payload); });
      try {
        const std::optional<Bytes> reply = call(worker, buffer, timeout_ns_);
        const int64_t end = now_ns();
        locked([&] { reply ? end_well(&slot, end, *reply) : close(&slot, kUnknownNs, kTimeout); });
      } catch (const SendFailed&) {
        locked([&] { end_failed(&slot); });
      }
    }
  } catch (const std::exception& error) {
    dialogue_.fail(4, {}, error.what());
  }

  template <class Action>
  auto locked(Action action) {
    Lock lock(mutex_);
    return action();
  }

  // Takes the next message before it is due. Returns false if the schedule has ended.
  bool take_next(Slot* slot, int64_t now) {
    if (schedule_.has_ended(now, dialogue_.stopped())) return false;
    take(slot, now);
    return true;
  }
  // Returns the message that is due now, or null.
  Slot* due(int64_t& now) {
    if (!schedule_.is_due(now, dialogue_.stopped())) return nullptr;
    Slot* slot = slots_->next();
    take(slot, now);
    return slot;
  }
  void take(Slot* slot, int64_t& now) {
    const bool counted = schedule_.counted();
    schedule_.take(slot);
    if (!counted) return;
    dialogue_.line("COUNTED");
    now = now_ns();  // the call must not include writing the line
  }

  // Waits until a taken message is due. Returns false if STOP or the end of the schedule came
  // first.
  bool await_due(const Slot& slot, int64_t& now) {
    return sleep_until(schedule_.closed ? schedule_.start_ns() : slot.intended_ns, now) &&
           now <= schedule_.last_ns();
  }

  Bytes open(Slot* slot, int64_t begin_ns, Payload* payload) {
    schedule_.opened(slot, begin_ns);
    ++sent_;
    if (first_begin_ns_ == kUnknownNs) first_begin_ns_ = begin_ns;
    current_seq_ = slot->seq;
    current_begin_ns_ = begin_ns;
    return payload->stamp(slot->seq, begin_ns);
  }

  void end_well(Slot* slot, int64_t end, Bytes reply) {
    if (!slot->open) return;
    if (kind_ == kMessage) {
      close(slot, end, 0);
    } else if (end - slot->begin_ns > timeout_ns_) {
      close(slot, kUnknownNs, kTimeout);
    } else {
      ++received_;
      close(slot, end, check_reply(slot->seq, reply));
    }
  }

  void end_failed(Slot* slot) {
    if (!slot->open) return;
    sent_ -= kind_ == kMessage;  // a failed call counts as sent
    close(slot, kind_ == kMessage ? now_ns() : kUnknownNs, kFailed);
  }

  void close(Slot* slot, int64_t end, uint8_t flags) {
    schedule_.resolved(slot);
    last_end_ns_ = end == kUnknownNs ? now_ns() : end;
    if (kind_ == kResult && !slot->accepted && (flags & (kFailed | kTimeout)) != 0)
      record(*slot, kUnknownNs, kGoal, flags);
    record(*slot, end, kind_, flags);
  }

  void expire(int64_t now) {
    for (Slot* slot; (slot = schedule_.oldest()) && now - slot->begin_ns >= timeout_ns_;)
      close(slot, kUnknownNs, kTimeout);
  }

  bool ended(int64_t now) {
    const bool all_resolved =
        schedule_.has_ended(now, dialogue_.stopped()) && schedule_.none_open();
    return all_resolved || (dialogue_.stopped() && !schedule_.beyond());
  }

  int64_t wait_from(int64_t now) const {
    int64_t next = now + kNapNs;
    if (const Slot* slot = schedule_.oldest()) next = std::min(next, slot->begin_ns + timeout_ns_);
    if (!schedule_.ended() && !schedule_.full() && !schedule_.native)
      next = std::min(next, schedule_.due_ns() - (schedule_.closed ? 0 : spin_ns_));
    return std::max<int64_t>(0, next - now);
  }

  void print_sent() { dialogue_.line("SENT", sent().fields()); }

  std::optional<SlotStore> slots_{sender_ ? std::optional<SlotStore>(std::in_place) : std::nullopt};
  int64_t first_begin_ns_ = kUnknownNs, last_end_ns_ = kUnknownNs;
};

}  // namespace wattwire
