// Ends an executor's spin from any thread.

#pragma once

#include <atomic>
#include <future>

// `Executor` is rclcpp's, which looks at the future after each callback.
template <typename Executor>
class SpinEnd {
 public:
  explicit SpinEnd(Executor& executor) : executor_(executor) {}

  // Ends the spin, once; further calls do nothing.
  void reach() {
    if (reached_.exchange(true)) return;
    over_.set_value();
    executor_.cancel();
    left_.set_value();
  }

  // Spins until reach(), and returns only when the thread that called it has left the executor:
  // the caller may then destroy it.
  void spin_until() {
    executor_.spin_until_future_complete(future_);
    // A spin may also end because the context was shut down: then nobody called reach().
    if (reached_) left_.get_future().wait();
  }

 private:
  Executor& executor_;
  std::promise<void> over_, left_;
  std::shared_future<void> future_ = over_.get_future().share();
  std::atomic<bool> reached_{false};
};
