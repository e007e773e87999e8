// A ROS node with its executor, and its QoS.

#pragma once

#include <rmw/rmw.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>
#include <thread>

#include "executor.hpp"
#include "spin_end.hpp"
#include "wattwire/kit.hpp"
#include "wattwire_ros2/leaving.hpp"
#include "wattwire_ros2/process.hpp"
#include "wattwire_ros2/shared_memory.hpp"

class Session {
 public:
  explicit Session(wattwire::Kit& kit) : kit_(kit), profile_sha256_(configure_process(kit)) {
    check_array(kit);
    // Puts rclcpp's log file into the folder of the run instead of the user's home.
    set_variable("ROS_LOG_DIR", std::filesystem::absolute(out_folder()).string());
    remove_dead_memory();
    rclcpp::init(0, nullptr, rclcpp::InitOptions(), rclcpp::SignalHandlerOptions::None);
    check_rmw();
    chosen_ = make_executor(kit.string("settings.executor"));
    node_ = std::make_shared<rclcpp::Node>("wattwire_" + kit.string("role") + "_" +
                                           std::to_string(kit.integer("node")));
    transports_ =
        transports_in_use(kit.string("settings.transports"), rmw_get_implementation_identifier());
    executor().add_node(node_);
    created_ns_ = wattwire::now_ns();
  }

  // The RMW removes its shared-memory files here.
  ~Session() {
    leave_by_exit_code();
    chosen_.executor.reset();
    node_.reset();
    rclcpp::shutdown();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  wattwire::Kit& kit() { return kit_; }
  const rclcpp::Node::SharedPtr& node() { return node_; }
  rclcpp::Executor& executor() { return *chosen_.executor; }

  std::string name(const std::string& leaf) const {
    return "/wattwire_" + kit_.string("run") + "/" + leaf;
  }

  // Returns the settings as a QoS profile. Services are always volatile, as ROS requires.
  rclcpp::QoS qos(bool topic) const {
    rclcpp::QoS qos(static_cast<size_t>(kit_.integer("settings.depth", 1, INT32_MAX)));
    if (kit_.string("settings.history") == "keep_all") qos.keep_all();
    kit_.string("settings.reliability") == "reliable" ? qos.reliable() : qos.best_effort();
    if (topic && kit_.string("settings.durability") == "transient_local") qos.transient_local();
    return qos;
  }
#ifdef WATTWIRE_ROS_HUMBLE
  rmw_qos_profile_t service_qos() const { return qos(false).get_rmw_qos_profile(); }
#else
  rclcpp::QoS service_qos() const { return qos(false); }
#endif

  void spin_once(int64_t timeout_ns) { executor().spin_once(std::chrono::nanoseconds(timeout_ns)); }

  // Spins until the end of the window.
  void spin_until_end() {
    // Never destroyed, because the kit's thread may still use it when this node closes.
    auto* end = new SpinEnd<rclcpp::Executor>(executor(), chosen_.by);
    kit_.on_end([end] { end->reach(); });
    end->spin_until();
  }

  // Calls `act(slot, buffer)` for each slot, with replies on this executor, until STOP.
  template <typename Act>
  void drive(Act act) {
    auto poll = [this](int64_t timeout_ns) { spin_once(timeout_ns); };
    if (kit_.string("pacing") != "native" || kit_.string("loop") != "open") {
      kit_.drive(act, poll);
      return;
    }
    kit_.wait_go();
    spin_native(act);
    kit_.end_schedule(poll);
  }

  // Ends a native schedule whose last message is resolved.
  void settle() {
    if (over_ != nullptr && kit_.finished()) over_->reach();
  }

  // Prints READY of a server after the graph lists its clients. The clients probe for the match.
  void await_clients(const std::string& service, const rclcpp::QoS& granted) {
#ifdef WATTWIRE_ROS_HUMBLE
    (void)service;
    ready(-1, granted);
#else
    auto clients = [&] { return static_cast<int64_t>(node_->count_clients(service)); };
    kit_.await_peers(clients, [this](int64_t timeout_ns) { spin_once(timeout_ns); });
    ready(clients(), granted);
#endif
  }

  // Prints READY with the effective settings. `granted` is the QoS that the endpoint reports.
  void ready(int64_t matched, const rclcpp::QoS& granted) {
    const rmw_qos_profile_t& profile = granted.get_rmw_qos_profile();
    const bool reliable = profile.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE;
    const bool keep_all = profile.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
    wattwire::Ready ready;
    ready.matched = matched;
    ready.discovery_ns = matched < 0 ? -1 : wattwire::now_ns() - created_ns_;
    const std::string rmw = rmw_get_implementation_identifier();
    ready.library = {"rclcpp", package_version("rclcpp"),
                     "rcl " + package_version("rcl") + ", " + rmw + " " + package_version(rmw)};
    auto& effective = ready.effective;
    for (const auto& [name, value] : effective_security(kit_)) effective[name] = value;
    effective["distribution"] = variable("WATTWIRE_ROS2_DISTRIBUTION");
    effective["rmw"] = rmw_get_implementation_identifier();
    effective["libraries"] = loaded_libraries();
    effective["transports"] = transports_;
    effective["rmw_profile_sha256"] = profile_sha256_;
    effective["domain"] = domain_of(kit_);
    effective["discovery"] = discovery_range(kit_);
    effective["executor_class"] = chosen_.name;
    effective["executor_threads"] = chosen_.threads;
    effective["reliability"] = reliable ? "reliable" : "best_effort";
    effective["history"] = keep_all ? "keep_all" : "keep_last";
    effective["depth"] = static_cast<int64_t>(profile.depth);
    effective["durability"] =
        profile.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE ? "volatile" : "transient_local";
    ready.guarantee = {reliable && keep_all ? "reliable" : "best_effort", "per_sender",
                       keep_all ? "block" : "drop_oldest"};
    kit_.ready(ready);
  }

 private:
  static std::string out_folder() {
    std::ifstream file("/proc/self/cmdline");
    for (std::string word; std::getline(file, word, '\0');) {
      if (word == "--out" && std::getline(file, word, '\0')) return word;
    }
    throw wattwire::MiddlewareFailed("no --out in /proc/self/cmdline; is /proc mounted?");
  }

  void check_rmw() const {
    const std::string loaded = rmw_get_implementation_identifier();
    const std::string requested = kit_.string("settings.rmw");
    if (!requested.empty() && loaded != requested) {
      throw wattwire::MiddlewareFailed("settings.rmw: requested " + requested + ", loaded " +
                                       loaded);
    }
  }

  // A wall timer provides the ticks. The executor has no timeouts of the kit.
  template <typename Act>
  void spin_native(Act act) {
    // Never destroyed, as in spin_until_end.
    auto* over = over_ = new SpinEnd<rclcpp::Executor>(executor(), chosen_.by);
    std::thread([this, over] {
      kit_.wait_stop();
      over->reach();
    }).detach();
    kit_.wait_timer_birth();
    auto on_timer = [&] {
      wattwire::Slot* slot = kit_.tick();
      if (slot != nullptr) {
        try {
          act(slot, kit_.begin(slot));
        } catch (const wattwire::SendFailed&) {
          kit_.fail(slot);
        }
      }
      settle();
    };
    const auto timer =
        node_->create_wall_timer(std::chrono::nanoseconds(kit_.period_ns()), on_timer);
    over->spin_until();
    timer->cancel();
  }

  wattwire::Kit& kit_;
  const std::string profile_sha256_;
  std::string transports_;
  rclcpp::Node::SharedPtr node_;
  ChosenExecutor chosen_;
  SpinEnd<rclcpp::Executor>* over_ = nullptr;
  int64_t created_ns_ = 0;
};
