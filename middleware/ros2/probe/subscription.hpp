// A subscription of the probe, and the records of what it takes.

#pragma once

#include <rmw/rmw.h>

#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "endpoints.hpp"
#include "message_types.hpp"
#include "records.hpp"

inline int64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Reads both clocks, again if the process lost its CPU in between: their difference shows when the
// wall clock is set.
inline void read_clocks(Record& record) {
  constexpr int64_t kApartNsMax = 20'000;
  for (int tries = 0; tries < 4; ++tries) {
    record.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    record.taken_ns = clock_ns(CLOCK_REALTIME);
    if (clock_ns(CLOCK_MONOTONIC) - record.monotonic_ns < kApartNsMax) return;
  }
}

class Subscription {
 public:
  Subscription(rcl_node_t* node, const std::string& topic, const MessageType& type,
               const rmw_qos_profile_t& qos)
      : node_(node), stamp_(type.stamp), qos_(qos) {
    rcl_subscription_options_t options = rcl_subscription_get_default_options();
    options.qos = qos;
    check(rcl_subscription_init(&subscription_, node, type.support, topic.c_str(), &options),
          "rcl_subscription_init");
  }
  ~Subscription() { ignore(rcl_subscription_fini(&subscription_, node_)); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  const rcl_subscription_t* handle() const { return &subscription_; }
  const rmw_qos_profile_t& qos() const { return qos_; }
  StampPlace stamp() const { return stamp_; }
  // CLOCK_REALTIME and CLOCK_MONOTONIC before it existed. Older messages are a publisher's history.
  int64_t begin_ns() const { return begin_ns_; }
  int64_t begin_monotonic_ns() const { return begin_monotonic_ns_; }

  int64_t matched() const {
    size_t count = 0;
    ignore(rcl_subscription_get_publisher_count(&subscription_, &count));
    return static_cast<int64_t>(count);
  }

 private:
  rcl_node_t* node_;
  const StampPlace stamp_;
  const rmw_qos_profile_t qos_;
  const int64_t begin_ns_ = clock_ns(CLOCK_REALTIME);
  const int64_t begin_monotonic_ns_ = clock_ns(CLOCK_MONOTONIC);
  rcl_subscription_t subscription_ = rcl_get_zero_initialized_subscription();
};

// A replaced subscription, which is read until the publishers also send to the new one.
struct Overlap {
  std::unique_ptr<Subscription> subscription;
  int64_t end_ns;  // CLOCK_MONOTONIC
  std::set<std::pair<uint32_t, uint64_t>> taken;

  // Returns whether this is the first copy of a message. Without a sequence, the time of the
  // publication identifies it.
  bool is_first(const Record& record) {
    const bool has_sequence = record.sequence != kNoSequence;
    if (!has_sequence && record.source_ns == 0) return true;
    const auto number = has_sequence ? record.sequence : static_cast<uint64_t>(record.source_ns);
    return taken.emplace(record.stream, number).second;
  }
};
