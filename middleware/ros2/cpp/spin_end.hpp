// Ends the spin of an executor from any thread.

#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

// `kUntilFuture` calls spin_until_future_complete, which checks the future after each callback. In
// rclcpp this function has one thread. `kSpin` calls spin, which has all threads of the executor.
enum class SpinBy { kUntilFuture, kSpin };

// `Executor` is rclcpp's.
template <typename Executor>
class SpinEnd {
 public:
  explicit SpinEnd(Executor& executor, SpinBy by = SpinBy::kUntilFuture)
      : executor_(executor), by_(by) {}

  // Ends the spin. Further calls have no effect.
  void reach() {
    if (reached_.exchange(true)) return;
    over_.set_value();
    // A spin that begins after cancel() would not end, and spin does not check the future.
    while (by_ == SpinBy::kSpin && !executor_.is_spinning() && !returned_) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    executor_.cancel();
    left_.set_value();
  }

  // Spins until reach(). Returns after the thread that called reach() has left the executor, so
  // that the caller may destroy it.
  void spin_until() {
    if (by_ == SpinBy::kSpin) {
      executor_.spin();
      returned_ = true;
    } else {
      executor_.spin_until_future_complete(future_);
    }
    // A shutdown of the context also ends a spin, without a call of reach().
    if (reached_) left_.get_future().wait();
  }

 private:
  Executor& executor_;
  std::promise<void> over_, left_;
  std::shared_future<void> future_ = over_.get_future().share();
  const SpinBy by_;
  std::atomic<bool> reached_{false}, returned_{false};
};
