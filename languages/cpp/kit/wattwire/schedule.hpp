// The schedule of a sender and the state of its open messages (C-10 to C-14). No lock of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "payload.hpp"

namespace wattwire {

// One message of the schedule, from its tick to its reply.
struct Slot {
  uint64_t seq = 0;
  int64_t intended_ns = kUnknownNs;
  int64_t begin_ns = kUnknownNs;
  bool accepted = false;
  bool open = true;
};

class Schedule {
 public:
  explicit Schedule(const Spec& spec)
      : node(static_cast<uint64_t>(spec.integer("node"))),
        period_ns(spec.integer("period_ns")),
        closed(spec.string("loop") == "closed"),
        native(!closed && spec.string("pacing") == "native"),
        phase_ns_(spec.integer("phase_ns")),
        bound_ns_(add(spec.integer("duration_ns"), spec.integer("overrun_ns"))),
        warmup_ns_(spec.integer("warmup_ns")),
        open_max_(closed ? 1 : static_cast<size_t>(spec.integer("outstanding_max"))),
        scheduled_(closed ? spec.integer("count") : open_count(spec)),
        most_(scheduled_ + spec.integer("count_beyond")) {}

  void start(int64_t start_ns) {
    start_ns_ = start_ns;
    warm_until_ns_ = add(start_ns, warmup_ns_);
    last_ns_ = closed ? INT64_MAX : add(start_ns, bound_ns_);
  }
  int64_t start_ns() const { return start_ns_; }  // far away before GO
  int64_t warm_until_ns() const { return warm_until_ns_; }
  int64_t last_ns() const { return last_ns_; }
  int64_t due_ns() const { return start_ns_ + phase_ns_ + next_ * period_ns; }
  int64_t scheduled() const { return scheduled_; }
  // Whether all that is scheduled was taken; and whether more was, which count_beyond allows.
  bool counted() const { return next_ == scheduled_; }
  bool beyond() const { return next_ > scheduled_; }
  int64_t skipped() const { return skipped_; }
  bool started() const { return start_ns_ != INT64_MAX; }
  size_t open_max() const { return open_max_; }
  bool full() const { return open_ >= open_max_; }
  bool none_open() const { return open_ == 0; }
  bool through() const { return through_; }

  bool is_through(int64_t at_ns, bool stopped) {
    if (next_ >= most_ || stopped || at_ns > last_ns_) through_ = true;
    return through_;
  }

  // The slot that is to be sent now; null where there is none.
  Slot* tick(int64_t at_ns, bool stopped) {
    if (is_through(at_ns, stopped) || full() || at_ns < start_ns_) return nullptr;
    if (native) {
      int64_t late_ns = at_ns - due_ns() + period_ns / 2;
      if (late_ns < 0) return nullptr;
      int64_t ahead = std::min(late_ns / period_ns, scheduled_ - next_);
      skipped_ += ahead;
      next_ += ahead;
      if (is_through(at_ns, stopped)) return nullptr;
    } else if (!closed && at_ns < due_ns()) {
      return nullptr;
    }
    return claim();
  }

  Slot* claim() {
    slots_.push_back(take());
    return &slots_.back();
  }

  Slot take() {
    Slot slot;
    slot.seq = node << 48 | static_cast<uint64_t>(next_);
    if (!closed) slot.intended_ns = due_ns();
    ++next_;
    return slot;
  }

  void opened(Slot* slot) {
    ++open_;
    order_.push_back(slot);
  }
  void resolved(Slot* slot) {
    slot->open = false;
    --open_;
    while (!order_.empty() && !order_.front()->open) order_.pop_front();
  }
  Slot* oldest() const { return order_.empty() ? nullptr : order_.front(); }

  const uint64_t node;
  const int64_t period_ns;
  const bool closed, native;

 private:
  static int64_t add(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }
  static int64_t open_count(const Spec& spec) {
    int64_t left_ns = spec.integer("duration_ns") - spec.integer("phase_ns");
    int64_t period = spec.integer("period_ns");
    return left_ns <= 0 ? 0 : (left_ns - 1) / period + 1;
  }

  const int64_t phase_ns_, bound_ns_, warmup_ns_;
  const size_t open_max_;
  const int64_t scheduled_, most_;
  int64_t start_ns_ = INT64_MAX, warm_until_ns_ = INT64_MAX, last_ns_ = INT64_MAX;
  int64_t next_ = 0, skipped_ = 0;
  size_t open_ = 0;
  bool through_ = false;
  // Owns what `tick` gave out: a late reply may still name a slot that timed out.
  std::deque<Slot> slots_;
  std::deque<Slot*> order_;  // open messages, oldest first: all have the same timeout
};

}  // namespace wattwire
