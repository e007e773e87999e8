// A ROS node with a wait set that replaces the default executor.

#pragma once

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>
#include <rmw/rmw.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "wattwire/kit.hpp"
#include "wattwire_ros2/arrays.hpp"
#include "wattwire_ros2/leaving.hpp"
#include "wattwire_ros2/process.hpp"
#include "wattwire_ros2/shared_memory.hpp"

// Returns and clears rcl's last error message.
inline std::string take_error() {
  const std::string reason = rcl_get_error_string().str;
  rcl_reset_error();
  return reason;
}

// Throws rcl's error message if a call failed.
inline void check(rcl_ret_t code, const char* what) {
  if (code != RCL_RET_OK) throw wattwire::MiddlewareFailed(what + (": " + take_error()));
}

// Ignores errors of the shutdown, which do not affect the run.
inline void ignore(rcl_ret_t /*code*/) { rcl_reset_error(); }

class Session {
 public:
  explicit Session(wattwire::Kit& kit) : kit_(kit), profile_sha256_(configure_process(kit)) {
    check_array(kit);
    remove_dead_memory();
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    check(rcl_init_options_init(&options, allocator_), "rcl_init_options_init");
    check(rcl_init(0, nullptr, &options, &context_), "rcl_init");
    check(rcl_init_options_fini(&options), "rcl_init_options_fini");
    check_rmw();
    const std::string name =
        "wattwire_" + kit.string("role") + "_" + std::to_string(kit.integer("node"));
    const rcl_node_options_t node_options = rcl_node_get_default_options();
    check(rcl_node_init(&node_, name.c_str(), "", &context_, &node_options), "rcl_node_init");
    transports_ =
        transports_in_use(kit.string("settings.transports"), rmw_get_implementation_identifier());
    limit_to_interface(kit, rmw_get_implementation_identifier());
    check(rcl_clock_init(RCL_ROS_TIME, &clock_, &allocator_), "rcl_clock_init");
    check(rcl_guard_condition_init(&waker_, &context_, rcl_guard_condition_get_default_options()),
          "rcl_guard_condition_init");
    // An action has two topics (feedback, status), three services (goal, cancel, result) and, on
    // the server, a timer.
    const bool action = kit.string("pattern") == "action";
    const size_t services = action ? 3 : 1;
    const size_t subscriptions = std::max<size_t>(action ? 2 : 1, kit.parts().size());
    check(rcl_wait_set_init(&wait_set_, subscriptions, 2, 1, services, services, 0, &context_,
                            allocator_),
          "rcl_wait_set_init");
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The RMW removes its shared-memory files here.
  ~Session() {
    leave_by_exit_code();
    ignore(rcl_wait_set_fini(&wait_set_));
    ignore(rcl_guard_condition_fini(&waker_));
    ignore(rcl_clock_fini(&clock_));
    ignore(rcl_node_fini(&node_));
    ignore(rcl_shutdown(&context_));
    ignore(rcl_context_fini(&context_));
  }

  wattwire::Kit& kit() { return kit_; }
  rcl_node_t* node() { return &node_; }
  rcl_context_t* context() { return &context_; }
  rcl_clock_t* clock() { return &clock_; }
  rcl_allocator_t allocator() const { return allocator_; }

  std::string name(const std::string& leaf) const { return name(kit_, leaf); }

  // Returns a name for the node, or for a part of a member, which has a run token of its own.
  static std::string name(const wattwire::Kit& kit, const std::string& leaf) {
    return "/wattwire_" + kit.string("run") + "/" + leaf;
  }

  // Returns the settings as a QoS profile. Services are always volatile, as ROS requires.
  rmw_qos_profile_t qos(bool topic) const { return qos(kit_, topic); }

  static rmw_qos_profile_t qos(const wattwire::Kit& kit, bool topic) {
    rmw_qos_profile_t profile = rmw_qos_profile_default;
    profile.reliability = kit.string("settings.reliability") == "reliable"
                              ? RMW_QOS_POLICY_RELIABILITY_RELIABLE
                              : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    profile.history = kit.string("settings.history") == "keep_last"
                          ? RMW_QOS_POLICY_HISTORY_KEEP_LAST
                          : RMW_QOS_POLICY_HISTORY_KEEP_ALL;
    profile.depth = static_cast<size_t>(kit.integer("settings.depth", 1, INT32_MAX));
    profile.durability = topic && kit.string("settings.durability") == "transient_local"
                             ? RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL
                             : RMW_QOS_POLICY_DURABILITY_VOLATILE;
    return profile;
  }

#ifndef WATTWIRE_ROS_HUMBLE
  int64_t count_clients(const std::string& service) const {
    size_t count = 0;
    check(rcl_count_clients(&node_, service.c_str(), &count), "rcl_count_clients");
    return static_cast<int64_t>(count);
  }
#endif

  // Ends a wait. Any thread may call this.
  void wake() { ignore(rcl_trigger_guard_condition(&waker_)); }

  // Runs the executor (`turn(timeout_ns)`) until the end of the window, without timeouts of the
  // kit.
  template <typename Turn>
  void spin_until_end(Turn turn) {
    std::atomic<bool> over{false};
    kit_.on_end([this, &over] {
      over = true;
      wake();
    });
    while (!over) turn(-1);
  }

  // Runs one turn of the executor. Waits at most `timeout_ns` (without limit if negative) for the
  // entities that `add` puts into the set. Before READY, changes of the graph also wake it.
  template <typename Add>
  rcl_wait_set_t* wait(int64_t timeout_ns, Add add) {
    check(rcl_wait_set_clear(&wait_set_), "rcl_wait_set_clear");
    add(&wait_set_);
    check(rcl_wait_set_add_guard_condition(&wait_set_, &waker_, nullptr), "waker");
    if (!ready_) {
      const rcl_guard_condition_t* graph = rcl_node_get_graph_guard_condition(&node_);
      check(rcl_wait_set_add_guard_condition(&wait_set_, graph, nullptr), "graph condition");
    }
    const rcl_ret_t code = rcl_wait(&wait_set_, timeout_ns);
    if (code != RCL_RET_TIMEOUT) check(code, "rcl_wait");
    return &wait_set_;
  }

  // Returns the effective settings of an endpoint, from the QoS that it reports.
  static std::map<std::string, wattwire::Scalar> effective_qos(const rmw_qos_profile_t* granted) {
    if (granted == nullptr) throw wattwire::MiddlewareFailed("rcl does not report the granted QoS");
    const bool reliable = granted->reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE;
    const bool keep_all = granted->history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
    const bool is_volatile = granted->durability == RMW_QOS_POLICY_DURABILITY_VOLATILE;
    return {{"reliability", reliable ? "reliable" : "best_effort"},
            {"history", keep_all ? "keep_all" : "keep_last"},
            {"depth", static_cast<int64_t>(granted->depth)},
            {"durability", is_volatile ? "volatile" : "transient_local"}};
  }

  // Prints READY with the effective settings. `granted` is the QoS that the endpoint reports, and
  // `parts` are the entries of a member's parts.
  void ready(int64_t matched, int64_t discovery_ns, const rmw_qos_profile_t* granted,
             std::vector<wattwire::Object> parts = {}) {
    const auto of_endpoint = effective_qos(granted);
    // The role's endpoints may have opened sockets.
    const std::string reach = limit_to_interface(kit_, rmw_get_implementation_identifier());
    const bool reliable = granted->reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE;
    const bool keep_all = granted->history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
    wattwire::Ready ready;
    ready.matched = matched;
    ready.discovery_ns = discovery_ns;
    const std::string rmw = rmw_get_implementation_identifier();
    ready.library = {"rcl", package_version("rcl"), rmw + " " + package_version(rmw)};
    auto& effective = ready.effective;
    for (const auto& [name, value] : effective_security(kit_)) effective[name] = value;
    effective["distribution"] = variable("WATTWIRE_ROS2_DISTRIBUTION");
    effective["rmw"] = rmw_get_implementation_identifier();
    effective["libraries"] = loaded_libraries();
    effective["transports"] = transports_;
    effective["rmw_profile_sha256"] = profile_sha256_;
    effective["domain"] = domain_of(kit_);
    effective["discovery"] = reach;
    effective["executor"] = "rcl_wait";
    for (const auto& [name, value] : of_endpoint) effective[name] = value;
    ready.guarantee = {reliable && keep_all ? "reliable" : "best_effort", "per_sender",
                       keep_all ? "block" : "drop_oldest"};
    ready.parts = std::move(parts);
    ready_ = true;
    kit_.ready(ready);
  }

 private:
  void check_rmw() const {
    const std::string loaded = rmw_get_implementation_identifier();
    const std::string requested = kit_.string("settings.rmw");
    if (!requested.empty() && loaded != requested) {
      throw wattwire::MiddlewareFailed("settings.rmw: requested " + requested + ", loaded " +
                                       loaded + "; this ROS has no loader for another RMW in C++");
    }
  }

  wattwire::Kit& kit_;
  const std::string profile_sha256_;
  std::string transports_;
  rcl_allocator_t allocator_ = rcl_get_default_allocator();
  rcl_context_t context_ = rcl_get_zero_initialized_context();
  rcl_node_t node_ = rcl_get_zero_initialized_node();
  rcl_clock_t clock_{};
  rcl_guard_condition_t waker_ = rcl_get_zero_initialized_guard_condition();
  rcl_wait_set_t wait_set_ = rcl_get_zero_initialized_wait_set();
  bool ready_ = false;
};
