// The slots of a middleware's periodic timer, for pacing = native (C-10).
#pragma once

#include <algorithm>
#include <cstdint>

namespace wattwire::native_timer {

// Returns the number of slots between the next slot, which was due `late_ns` ago, and the slot
// nearest to this tick. The number is negative if that slot has already been taken.
inline int64_t slots_ahead(int64_t late_ns, int64_t period_ns) {
  const int64_t half_later_ns = late_ns + period_ns / 2;
  return half_later_ns < 0 ? -1 : half_later_ns / period_ns;
}

// Returns the time at which to create the timer, at `now` or later: one period before a slot, so
// that the first tick coincides with the slot.
inline int64_t birth_ns(int64_t first_due_ns, int64_t period_ns, int64_t now) {
  const int64_t earliest_ns = first_due_ns - period_ns;
  const int64_t behind_ns = std::max<int64_t>(0, now - earliest_ns);
  return earliest_ns + (behind_ns + period_ns - 1) / period_ns * period_ns;
}

}  // namespace wattwire::native_timer
