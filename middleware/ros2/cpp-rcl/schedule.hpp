// Native pacing: a ROS timer provides the ticks, and its callback in the executor does all work.

#pragma once

#include <rcl/timer.h>

#include <thread>

#include "session.hpp"

class Timer {
 public:
  Timer(Session& session, int64_t period_ns) {
#ifdef WATTWIRE_ROS_HUMBLE
    check(rcl_timer_init(&timer_, session.clock(), session.context(), period_ns, nullptr,
                         session.allocator()),
          "rcl_timer_init");
#else
    check(rcl_timer_init2(&timer_, session.clock(), session.context(), period_ns, nullptr,
                          session.allocator(), true),
          "rcl_timer_init2");
#endif
  }
  ~Timer() { ignore(rcl_timer_fini(&timer_)); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void add_to(rcl_wait_set_t* set) {
    check(rcl_wait_set_add_timer(set, &timer_, nullptr), "rcl_wait_set_add_timer");
  }

  // Returns whether the timer has fired, and rearms it.
  bool take() {
    bool ready = false;
    check(rcl_timer_is_ready(&timer_, &ready), "rcl_timer_is_ready");
    return ready && rcl_timer_call(&timer_) == RCL_RET_OK;
  }

 private:
  rcl_timer_t timer_ = rcl_get_zero_initialized_timer();
};

// Wakes the executor at STOP. After an error the process ends together with this thread.
class StopWatch {
 public:
  explicit StopWatch(Session& session)
      : thread_([&session] {
          session.kit().wait_stop();
          session.wake();
        }) {}
  ~StopWatch() {
    if (thread_.joinable()) thread_.detach();
  }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

// `act(slot, buffer)` sends, or throws SendFailed; `add(set)` and `take(set)` are the endpoint's
// part of the executor.
template <typename Act, typename Add, typename Take>
void drive_native(Session& session, Act act, Add add, Take take) {
  wattwire::Kit& kit = session.kit();
  kit.wait_go();
  StopWatch stop(session);
  kit.wait_timer_birth();
  Timer timer(session, kit.integer("period_ns"));
  while (!kit.finished()) {
    rcl_wait_set_t* set = session.wait(-1, [&](rcl_wait_set_t* empty) {
      timer.add_to(empty);
      add(empty);
    });
    take(set);
    if (!timer.take()) continue;
    wattwire::Slot* slot = kit.tick();
    if (slot == nullptr) continue;
    try {
      act(slot, kit.begin(slot));
    } catch (const wattwire::SendFailed&) {
      kit.fail(slot);
    }
  }
  kit.end_schedule([&](int64_t timeout_ns) { take(session.wait(timeout_ns, add)); });
  stop.join();
}
