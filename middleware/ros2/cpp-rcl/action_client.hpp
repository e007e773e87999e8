// Action pattern, client side, with callbacks. Several goals may be open.

#pragma once

#include <rcl_action/rcl_action.h>

#include <map>
#include <optional>
#include <string>

#include "action_messages.hpp"
#include "schedule.hpp"

template <typename Type>
class ActionClient {
 public:
  explicit ActionClient(Session& session) : session_(session), kit_(session.kit()) {
    rcl_action_client_options_t options = rcl_action_client_get_default_options();
    options.goal_service_qos = options.result_service_qos = session.qos(false);
    options.feedback_topic_qos = session.qos(false);
    check(rcl_action_client_init(&client_, session.node(), Type::support(),
                                 session.name("action").c_str(), &options),
          "rcl_action_client_init");
  }
  ~ActionClient() { ignore(rcl_action_client_fini(&client_, session_.node())); }
  ActionClient(const ActionClient&) = delete;
  ActionClient& operator=(const ActionClient&) = delete;

  int64_t available() {
    bool available = false;
    check(rcl_action_server_is_available(session_.node(), &client_, &available), "availability");
    return available ? 1 : 0;
  }

  void add_to(rcl_wait_set_t* set) {
    check(rcl_action_wait_set_add_action_client(set, &client_, nullptr, nullptr), "add client");
  }

  // Sends a goal; `slot` is null for a probe.
  void send(wattwire::Slot* slot, wattwire::Bytes buffer) {
    const GoalId id = next_id();
    assign(request_.message.goal_id, id);
    assign(request_.message.goal.goal, buffer);
    int64_t number = 0;
    if (rcl_action_send_goal_request(&client_, &request_.message, &number) != RCL_RET_OK) {
      throw wattwire::SendFailed(take_error());
    }
    sent_[number] = id;
    goals_[id] = {slot, kit_.feedback_count(), false};
    missing_feedback_ += kit_.feedback_count();
  }

  // Takes one message of each kind that is ready.
  void take(const rcl_wait_set_t* set) {
    bool feedback, status, accepted, cancelled, result;
    check(rcl_action_client_wait_set_get_entities_ready(set, &client_, &feedback, &status,
                                                        &accepted, &cancelled, &result),
          "action client's entities");
    if (accepted) take_acceptance();
    if (feedback) take_feedback();
    if (status) ignore(rcl_action_take_status(&client_, &status_.message));
    if (result) take_result();
  }

  // Sends a goal and waits for it. Returns nullopt unless its acceptance, all feedback and its
  // result arrive in time.
  std::optional<wattwire::Bytes> probe(wattwire::Bytes buffer, int64_t timeout_ns) {
    const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
    send(nullptr, buffer);
    const GoalId id = id_of(request_.message.goal_id);
    auto add = [this](rcl_wait_set_t* set) { add_to(set); };
    for (int64_t left_ns; (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
      take(session_.wait(left_ns, add));
      const auto entry = goals_.find(id);
      if (entry == goals_.end()) return std::nullopt;  // rejected
      if (entry->second.ended && entry->second.missing <= 0) return view(result_field());
    }
    return std::nullopt;
  }

  // Forgets the probes, so that their late messages are ignored.
  void forget_probes() {
    goals_.clear();
    missing_feedback_ = 0;
  }

  // Waits at most quiet_ms for feedback that arrives after its result.
  void drain() {
    if (kit_.string("settings.late_feedback") != "keep") return;
    const int64_t until_ns = wattwire::now_ns() + kit_.integer("quiet_ms") * 1000000;
    auto add = [this](rcl_wait_set_t* set) { add_to(set); };
    for (int64_t left_ns; missing_feedback_ > 0 && (left_ns = until_ns - wattwire::now_ns()) > 0;) {
      take(session_.wait(left_ns, add));
    }
  }

 private:
  struct Open {
    wattwire::Slot* slot;
    int64_t missing;
    bool ended;
  };
  using Goals = std::map<GoalId, Open>;

  // Returns an id that is unique in the run, as ROS requires: the node's number and a counter.
  GoalId next_id() {
    const uint64_t parts[2] = {static_cast<uint64_t>(kit_.integer("node")), ++count_};
    GoalId id;
    std::memcpy(id.data(), parts, id.size());
    return id;
  }

  const auto& result_field() const { return result_.message.result.result; }

  // Returns the goal of a request's number, and removes the number.
  typename Goals::iterator goal_of(std::map<int64_t, GoalId>& numbers, int64_t number) {
    const auto entry = numbers.find(number);
    if (entry == numbers.end()) return goals_.end();
    const auto goal = goals_.find(entry->second);
    numbers.erase(entry);
    return goal;
  }

  void take_acceptance() {
    rmw_request_id_t header;
    if (rcl_action_take_goal_response(&client_, &header, &reply_.message) != RCL_RET_OK) {
      return rcl_reset_error();
    }
    const auto goal = goal_of(sent_, header.sequence_number);
    if (goal == goals_.end()) return;
    wattwire::Slot* slot = goal->second.slot;
    if (!reply_.message.accepted) {
      if (slot != nullptr) kit_.fail(slot);
      return forget(goal);
    }
    if (slot != nullptr) kit_.accepted(slot);
    assign(asked_.message.goal_id, goal->first);
    int64_t number = 0;
    check(rcl_action_send_result_request(&client_, &asked_.message, &number), "ask for result");
    results_[number] = goal->first;
  }

  void take_feedback() {
    if (rcl_action_take_feedback(&client_, &feedback_.message) != RCL_RET_OK) {
      return rcl_reset_error();
    }
    // Every client of a server receives the feedback of all clients.
    const auto goal = goals_.find(id_of(feedback_.message.goal_id));
    if (goal == goals_.end()) return;
    Open& open = goal->second;
    if (open.slot != nullptr) {
      kit_.feedback(view(feedback_.message.feedback.feedback), open.slot);
    }
    --missing_feedback_;
    if (--open.missing <= 0 && open.ended && open.slot != nullptr) forget(goal);
  }

  void take_result() {
    rmw_request_id_t header;
    if (rcl_action_take_result_response(&client_, &header, &result_.message) != RCL_RET_OK) {
      return rcl_reset_error();
    }
    const auto goal = goal_of(results_, header.sequence_number);
    if (goal == goals_.end()) return;
    Open& open = goal->second;
    open.ended = true;
    if (open.slot == nullptr) return;
    const bool succeeded = result_.message.status == action_msgs__msg__GoalStatus__STATUS_SUCCEEDED;
    succeeded ? kit_.complete(open.slot, view(result_field())) : kit_.fail(open.slot);
    if (open.missing <= 0 || kit_.string("settings.late_feedback") == "drop") forget(goal);
  }

  void forget(typename Goals::iterator goal) {
    missing_feedback_ -= goal->second.missing;
    goals_.erase(goal);
  }

  Session& session_;
  wattwire::Kit& kit_;
  rcl_action_client_t client_ = rcl_action_get_zero_initialized_client();
  Owned<typename Type::GoalRequest> request_;
  Owned<typename Type::GoalReply> reply_;
  Owned<typename Type::ResultRequest> asked_;
  Owned<typename Type::ResultReply> result_;
  Owned<typename Type::Feedback> feedback_;
  Owned<StatusArray> status_;
  std::map<int64_t, GoalId> sent_, results_;  // by ROS's number of the request
  Goals goals_;
  uint64_t count_ = 0;
  int64_t missing_feedback_ = 0;
};

template <typename Type>
void perform_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  ActionClient<Type> client(session);
  auto add = [&](rcl_wait_set_t* set) { client.add_to(set); };
  auto take = [&](const rcl_wait_set_t* set) { client.take(set); };
  auto poll = [&](int64_t timeout_ns) { take(session.wait(timeout_ns, add)); };
  auto act = [&](wattwire::Slot* slot, wattwire::Bytes buffer) { client.send(slot, buffer); };
  kit.await_peers([&] { return client.available(); }, poll);
  // A probe is necessary, because ROS reports a server as ready before all five channels match.
  kit.probe([&](wattwire::Bytes buffer, int64_t ns) { return client.probe(buffer, ns); });
  client.forget_probes();
  const rmw_qos_profile_t requested = session.qos(false);
  session.ready(1, wattwire::now_ns() - created_ns, &requested);
  if (kit.string("pacing") == "native" && kit.string("loop") == "open") {
    drive_native(session, act, add, take);
  } else {
    kit.drive(act, poll);
  }
  client.drain();
}

inline void perform(wattwire::Kit& kit) {
  kit.text() ? perform_as<TextAction>(kit) : perform_as<BytesAction>(kit);
}
