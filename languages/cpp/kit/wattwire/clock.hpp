// The node's clock (C-27) and sleeping until a time.
#pragma once

#include <time.h>

#include <cstdint>

namespace wattwire {

inline int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// Sleeps until `due_ns`. May return early, so callers must read the clock again.
inline void sleep_until_ns(int64_t due_ns) {
  timespec due = {static_cast<time_t>(due_ns / 1000000000), static_cast<long>(due_ns % 1000000000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
}

}  // namespace wattwire
