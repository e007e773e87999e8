// Ends the spin of an executor from any thread.

#pragma once

#include <atomic>
#include <future>

// `Executor` is rclcpp's, which checks the future after each callback.
template <typename Executor>
class SpinEnd {
 public:
  explicit SpinEnd(Executor& executor) : executor_(executor) {}

  // Ends the spin. Further calls have no effect.
  void reach() {
    if (reached_.exchange(true)) return;
    over_.set_value();
    executor_.cancel();
    left_.set_value();
  }

  // Spins until reach(). Returns after the thread that called reach() has left the executor, so
  // that the caller may destroy it.
  void spin_until() {
    executor_.spin_until_future_complete(future_);
    // A shutdown of the context also ends a spin, without a call of reach().
    if (reached_) left_.get_future().wait();
  }

 private:
  Executor& executor_;
  std::promise<void> over_, left_;
  std::shared_future<void> future_ = over_.get_future().share();
  std::atomic<bool> reached_{false};
};
