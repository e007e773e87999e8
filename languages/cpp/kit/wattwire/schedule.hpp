// A sender's schedule: the next message and the open messages (C-10 to C-14). The caller must lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "constants.hpp"
#include "native_timer.hpp"
#include "spec.hpp"

namespace wattwire {

// A message of the schedule, from its tick to its reply.
struct Slot {
  uint64_t seq = 0;
  int64_t intended_ns = kUnknownNs;
  int64_t begin_ns = kUnknownNs;
  Slot* older = nullptr;  // neighbours in the list of open messages
  Slot* newer = nullptr;
  bool accepted = false;
  bool open = true;
};

// Slots with stable addresses until the process ends, because a late reply may refer to a slot.
// Allocates memory in chunks, the first before the window, and touches it slot by slot.
class SlotStore {
 public:
  SlotStore() { grow(); }

  Slot* next() {
    if (used_ == kChunkSlots) grow();
    return new (chunks_.back().get() + sizeof(Slot) * used_++) Slot;
  }

 private:
  static constexpr size_t kChunkSlots = size_t{1} << 16;

  void grow() {
    chunks_.emplace_back(new unsigned char[kChunkSlots * sizeof(Slot)]);
    used_ = 0;
  }

  std::vector<std::unique_ptr<unsigned char[]>> chunks_;
  size_t used_ = 0;
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
        count_max_(scheduled_ + spec.integer("count_beyond")) {}

  void start(int64_t start_ns) {
    start_ns_ = start_ns;
    warm_until_ns_ = add(start_ns, warmup_ns_);
    last_ns_ = closed ? INT64_MAX : add(start_ns, bound_ns_);
  }
  bool started() const { return start_ns_ != INT64_MAX; }
  int64_t start_ns() const { return start_ns_; }  // INT64_MAX before GO
  int64_t warm_until_ns() const { return warm_until_ns_; }
  int64_t last_ns() const { return last_ns_; }
  // Returns the earliest send time of the next message.
  int64_t due_ns() const { return closed ? start_ns_ : start_ns_ + phase_ns_ + next_ * period_ns; }
  int64_t scheduled() const { return scheduled_; }
  int64_t skipped() const { return skipped_; }
  // `counted` is true after all scheduled messages were taken; `beyond` is true after further
  // messages, which count_beyond allows.
  bool counted() const { return next_ == scheduled_; }
  bool beyond() const { return next_ > scheduled_; }
  bool ended() const { return ended_; }
  size_t open_max() const { return open_max_; }
  bool full() const { return open_ >= open_max_; }
  bool none_open() const { return open_ == 0; }
  Slot* oldest() const { return oldest_; }  // expires first, because all timeouts are equal

  // Returns whether no further message may be sent at this time or later.
  bool has_ended(int64_t at_ns, bool stopped) {
    if (next_ >= count_max_ || stopped || at_ns > last_ns_) ended_ = true;
    return ended_;
  }

  // Returns whether a message may be sent now. With a native timer, skips missed slots.
  bool is_due(int64_t at_ns, bool stopped) {
    if (has_ended(at_ns, stopped) || full() || at_ns < start_ns_) return false;
    if (!native) return at_ns >= due_ns();
    const int64_t ahead = native_timer::slots_ahead(at_ns - due_ns(), period_ns);
    if (ahead < 0) return false;
    const int64_t passed = std::min(ahead, scheduled_ - next_);
    skipped_ += passed;
    next_ += passed;
    return !has_ended(at_ns, stopped);
  }

  // Makes `slot` the next message.
  void take(Slot* slot) {
    slot->seq = node << 48 | static_cast<uint64_t>(next_);
    if (!closed) slot->intended_ns = due_ns();
    slot->open = true;
    slot->accepted = false;
    ++next_;
  }

  void opened(Slot* slot, int64_t begin_ns) {
    slot->begin_ns = begin_ns;
    if (closed) slot->intended_ns = slot->begin_ns;
    slot->older = newest_;
    slot->newer = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->newer) = slot;
    newest_ = slot;
    ++open_;
  }

  void resolved(Slot* slot) {
    slot->open = false;
    (slot->older == nullptr ? oldest_ : slot->older->newer) = slot->newer;
    (slot->newer == nullptr ? newest_ : slot->newer->older) = slot->older;
    --open_;
  }

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
  const int64_t scheduled_, count_max_;
  int64_t start_ns_ = INT64_MAX, warm_until_ns_ = INT64_MAX, last_ns_ = INT64_MAX;
  int64_t next_ = 0, skipped_ = 0;
  size_t open_ = 0;
  bool ended_ = false;
  Slot *oldest_ = nullptr, *newest_ = nullptr;
};

}  // namespace wattwire
