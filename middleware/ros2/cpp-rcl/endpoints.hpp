// Publishers and subscriptions of the session's node.

#pragma once

#include <rcl/publisher.h>
#include <rcl/subscription.h>

#include <chrono>
#include <string>
#include <thread>

#include "messages.hpp"
#include "session.hpp"

template <typename Type>
class Publisher {
 public:
  Publisher(Session& session, const std::string& topic)
      : Publisher(session, session.kit(), topic) {}

  // `kit` is the session's, or that of a part of a member.
  Publisher(Session& session, const wattwire::Kit& kit, const std::string& topic)
      : session_(session), kit_(kit) {
    rcl_publisher_options_t options = rcl_publisher_get_default_options();
    options.qos = Session::qos(kit, true);
    check(rcl_publisher_init(&publisher_, session.node(), Type::support(),
                             Session::name(kit, topic).c_str(), &options),
          "rcl_publisher_init");
  }
  ~Publisher() { ignore(rcl_publisher_fini(&publisher_, session_.node())); }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  int64_t matched() const {
    size_t count = 0;
    check(rcl_publisher_get_subscription_count(&publisher_, &count), "subscription count");
    return static_cast<int64_t>(count);
  }

  const rmw_qos_profile_t* granted() const { return rcl_publisher_get_actual_qos(&publisher_); }

  // Returns false if the message was not sent.
  bool publish(const typename Type::Message& message) {
    const bool sent = rcl_publish(&publisher_, &message, nullptr) == RCL_RET_OK;
    if (!sent) rcl_reset_error();
    return sent;
  }

  // Waits until the messages are sent, because the destructor would discard them. Reliable QoS has
  // acknowledgements. Best effort has none, so the node waits for a fixed time.
  void drain() {
    if (is_reliable()) {
      await_acknowledgements(RCL_MS_TO_NS(kit_.integer("linger_ms")));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(kit_.integer("quiet_ms")));
    }
  }

  // Waits at most `timeout_ns` for the acknowledgements of reliable QoS; best effort has none.
  void await_acknowledgements(int64_t timeout_ns) {
    if (is_reliable()) ignore(rcl_publisher_wait_for_all_acked(&publisher_, timeout_ns));
  }

 private:
  bool is_reliable() const { return kit_.string("settings.reliability") == "reliable"; }

  Session& session_;
  const wattwire::Kit& kit_;
  rcl_publisher_t publisher_ = rcl_get_zero_initialized_publisher();
};

template <typename Type>
class Subscription {
 public:
  Subscription(Session& session, const std::string& topic)
      : Subscription(session, session.kit(), topic) {}

  // `kit` is the session's, or that of a part of a member.
  Subscription(Session& session, const wattwire::Kit& kit, const std::string& topic)
      : session_(session) {
    rcl_subscription_options_t options = rcl_subscription_get_default_options();
    options.qos = Session::qos(kit, true);
    check(rcl_subscription_init(&subscription_, session.node(), Type::support(),
                                Session::name(kit, topic).c_str(), &options),
          "rcl_subscription_init");
  }
  ~Subscription() { ignore(rcl_subscription_fini(&subscription_, session_.node())); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  int64_t matched() const {
    size_t count = 0;
    check(rcl_subscription_get_publisher_count(&subscription_, &count), "publisher count");
    return static_cast<int64_t>(count);
  }

  const rmw_qos_profile_t* granted() const {
    return rcl_subscription_get_actual_qos(&subscription_);
  }

  // Runs one turn of the executor. Calls `callback(message)` if a message arrives.
  template <typename Callback>
  void spin(int64_t timeout_ns, Callback callback) {
    take(session_.wait(timeout_ns, [&](rcl_wait_set_t* empty) { add_to(empty); }), callback);
  }

  void add_to(rcl_wait_set_t* set) {
    check(rcl_wait_set_add_subscription(set, &subscription_, &index_), "add subscription");
  }

  // Calls `callback(message)` if the wait has found a message.
  template <typename Callback>
  void take(rcl_wait_set_t* set, Callback callback) {
    if (set->subscriptions[index_] == nullptr) return;
    rmw_message_info_t info;
    if (rcl_take(&subscription_, &owned_.message, &info, nullptr) == RCL_RET_OK) {
      callback(owned_.message);
    } else {
      rcl_reset_error();
    }
  }

 private:
  Session& session_;
  rcl_subscription_t subscription_ = rcl_get_zero_initialized_subscription();
  Owned<Type> owned_;
  size_t index_ = 0;
};
