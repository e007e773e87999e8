// Slots of a middleware's own periodic timer: pacing = native (C-10).
#pragma once

#include <algorithm>
#include <cstdint>

namespace wattwire::native_timer {

// The number of slots between the next one, due `late_ns` ago, and the one nearest to this tick;
// negative where the tick is nearer to a slot that was taken.
inline int64_t slots_ahead(int64_t late_ns, int64_t period_ns) {
  const int64_t half_later_ns = late_ns + period_ns / 2;
  return half_later_ns < 0 ? -1 : half_later_ns / period_ns;
}

// When to create the timer, at `now` or later, so that its first tick is due with a slot: one
// period before that.
inline int64_t birth_ns(int64_t first_due_ns, int64_t period_ns, int64_t now) {
  const int64_t earliest_ns = first_due_ns - period_ns;
  const int64_t behind_ns = std::max<int64_t>(0, now - earliest_ns);
  return earliest_ns + (behind_ns + period_ns - 1) / period_ns * period_ns;
}

}  // namespace wattwire::native_timer
