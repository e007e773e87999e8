// The executors of rclcpp that the setting `executor` selects.

#pragma once

#include <cstdint>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>

#include "spin_end.hpp"
#include "wattwire/kit.hpp"

// Humble has no EventsExecutor.
#if __has_include(<rclcpp/experimental/executors/events_executor/events_executor.hpp>)
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#define WATTWIRE_ROS_EVENTS_EXECUTOR 1
#endif

// An executor with the name of its class, its number of threads and the function that spins it.
struct ChosenExecutor {
  std::unique_ptr<rclcpp::Executor> executor;
  std::string name;
  int64_t threads = 1;
  SpinBy by = SpinBy::kSpin;
};

inline ChosenExecutor make_executor(const std::string& level) {
  using rclcpp::executors::MultiThreadedExecutor;
  using rclcpp::executors::SingleThreadedExecutor;
  if (level == "single") {
    return {std::make_unique<SingleThreadedExecutor>(), "SingleThreadedExecutor", 1,
            SpinBy::kUntilFuture};
  }
  if (level == "multi") {
    auto executor = std::make_unique<MultiThreadedExecutor>();
    const auto threads = static_cast<int64_t>(executor->get_number_of_threads());
    return {std::move(executor), "MultiThreadedExecutor", threads, SpinBy::kSpin};
  }
  if (level != "events") {
    throw wattwire::BadSpec("settings.executor", level, "single, multi or events");
  }
#ifdef WATTWIRE_ROS_EVENTS_EXECUTOR
  using rclcpp::experimental::executors::EventsExecutor;
  return {std::make_unique<EventsExecutor>(), "EventsExecutor", 1, SpinBy::kSpin};
#else
  throw wattwire::Unsupported("settings.executor events; this rclcpp has no EventsExecutor");
#endif
}
