// Action pattern, server side: accepts goals, publishes feedback and returns results.

#pragma once

#include <rcl_action/rcl_action.h>

#include <map>
#include <string>
#include <utility>

#include "action_messages.hpp"
#include "session.hpp"

template <typename Type>
class ActionServer {
 public:
  explicit ActionServer(Session& session) : session_(session), kit_(session.kit()) {
    rcl_action_server_options_t options = rcl_action_server_get_default_options();
    options.goal_service_qos = options.result_service_qos = session.qos(false);
    options.feedback_topic_qos = session.qos(false);
    check(rcl_action_server_init(&server_, session.node(), session.clock(), Type::support(),
                                 session.name("action").c_str(), &options),
          "rcl_action_server_init");
  }
  ~ActionServer() {
    ignore(rcl_action_server_fini(&server_, session_.node()));
    for (auto& entry : goals_) ignore(rcl_action_goal_handle_fini(&entry.second.handle));
  }
  ActionServer(const ActionServer&) = delete;
  ActionServer& operator=(const ActionServer&) = delete;

  // Runs one turn of the executor, which takes one message of each kind that is ready.
  void spin(int64_t timeout_ns) {
    rcl_wait_set_t* set = session_.wait(timeout_ns, [this](rcl_wait_set_t* empty) {
      check(rcl_action_wait_set_add_action_server(empty, &server_, nullptr), "add action server");
    });
    bool goal, cancel, result, expired;
    check(rcl_action_server_wait_set_get_entities_ready(set, &server_, &goal, &cancel, &result,
                                                        &expired),
          "action server's entities");
    if (goal) take_goal();
    if (cancel) refuse_cancel();
    if (result) give_result();
    if (expired) forget_expired();
  }

 private:
  struct Accepted {
    rcl_action_goal_handle_t handle;
    wattwire::Goal goal;
    bool result_sent = false;
  };

  void take_goal() {
    rmw_request_id_t header;
    if (rcl_action_take_goal_request(&server_, &header, &request_.message) != RCL_RET_OK) {
      return rcl_reset_error();
    }
    std::optional<wattwire::Goal> goal = kit_.goal(view(request_.message.goal.goal));
    reply_.message.accepted = goal.has_value();
    if (rcl_action_send_goal_response(&server_, &header, &reply_.message) != RCL_RET_OK) {
      return rcl_reset_error();  // the client has left
    }
    if (!goal) return;
    kit_.accept(*goal);
    execute(std::move(*goal));
  }

  // Runs a goal through the same states as rclcpp, with a status message at each change.
  void execute(wattwire::Goal goal) {
    rcl_action_goal_info_t info = rcl_action_get_zero_initialized_goal_info();
    info.goal_id = request_.message.goal_id;
    rcl_action_goal_handle_t* handle = rcl_action_accept_new_goal(&server_, &info);
    check(handle == nullptr ? RCL_RET_ERROR : RCL_RET_OK, "rcl_action_accept_new_goal");
    check(rcl_action_update_goal_state(handle, GOAL_EVENT_EXECUTE), "goal executes");
    publish_status();
    assign(feedback_.message.goal_id, id_of(info.goal_id));
    for (int64_t count = kit_.feedback_count(); count > 0; --count) {
      assign(feedback_.message.feedback.feedback, kit_.feedback_begin(goal));
      check(rcl_action_publish_feedback(&server_, &feedback_.message), "publish feedback");
      kit_.feedback_sent(goal);
    }
    check(rcl_action_update_goal_state(handle, GOAL_EVENT_SUCCEED), "goal succeeds");
    publish_status();
    check(rcl_action_notify_goal_done(&server_), "rcl_action_notify_goal_done");
    // When a goal expires, rcl frees its copy of the handle, but not the data of the handle.
    goals_.insert_or_assign(id_of(info.goal_id), Accepted{*handle, std::move(goal)});
  }

  // Handles a request for a result, which the client sends after the acceptance.
  void give_result() {
    rmw_request_id_t header;
    if (rcl_action_take_result_request(&server_, &header, &asked_.message) != RCL_RET_OK) {
      return rcl_reset_error();
    }
    const auto entry = goals_.find(id_of(asked_.message.goal_id));
    const bool known = entry != goals_.end();
    result_.message.status = action_msgs__msg__GoalStatus__STATUS_UNKNOWN;
    if (known) result_.message.status = action_msgs__msg__GoalStatus__STATUS_SUCCEEDED;
    assign(result_.message.result.result,
           known ? kit_.result(entry->second.goal) : wattwire::Bytes());
    if (rcl_action_send_result_response(&server_, &header, &result_.message) != RCL_RET_OK) {
      return rcl_reset_error();
    }
    if (known && !std::exchange(entry->second.result_sent, true))
      kit_.finish_goal(entry->second.goal);
  }

  void refuse_cancel() {
    rmw_request_id_t header;
    Owned<CancelRequest> request;
    Owned<CancelReply> reply;
    ignore(rcl_action_take_cancel_request(&server_, &header, &request.message));
    reply.message.return_code = action_msgs__srv__CancelGoal_Response__ERROR_REJECTED;
    ignore(rcl_action_send_cancel_response(&server_, &header, &reply.message));
  }

  void forget_expired() {
    rcl_action_goal_info_t info;
    size_t count = 0;
    do {
      check(rcl_action_expire_goals(&server_, &info, 1, &count), "rcl_action_expire_goals");
      const auto entry = count == 0 ? goals_.end() : goals_.find(id_of(info.goal_id));
      if (entry == goals_.end()) continue;
      ignore(rcl_action_goal_handle_fini(&entry->second.handle));
      goals_.erase(entry);
    } while (count != 0);
  }

  void publish_status() {
    rcl_action_goal_status_array_t status = rcl_action_get_zero_initialized_goal_status_array();
    check(rcl_action_get_goal_status_array(&server_, &status), "goal status");
    const rcl_ret_t published = rcl_action_publish_status(&server_, &status.msg);
    ignore(rcl_action_goal_status_array_fini(&status));
    check(published, "rcl_action_publish_status");
  }

  Session& session_;
  wattwire::Kit& kit_;
  rcl_action_server_t server_ = rcl_action_get_zero_initialized_server();
  Owned<typename Type::GoalRequest> request_;
  Owned<typename Type::GoalReply> reply_;
  Owned<typename Type::ResultRequest> asked_;
  Owned<typename Type::ResultReply> result_;
  Owned<typename Type::Feedback> feedback_;
  std::map<GoalId, Accepted> goals_;
};

template <typename Type>
void serve_goals_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  ActionServer<Type> server(session);
  auto spin = [&](int64_t timeout_ns) { server.spin(timeout_ns); };
  int64_t matched = -1;
  int64_t discovery_ns = -1;
#ifndef WATTWIRE_ROS_HUMBLE
  const std::string goal_service = session.name("action") + "/_action/send_goal";
  auto clients = [&] { return session.count_clients(goal_service); };
  kit.await_peers(clients, spin);
  matched = clients();
  discovery_ns = wattwire::now_ns() - created_ns;
#endif
  const rmw_qos_profile_t requested = session.qos(false);
  session.ready(matched, discovery_ns, &requested);
  session.spin_until_end(spin);
}

inline void serve_goals(wattwire::Kit& kit) {
  kit.text() ? serve_goals_as<TextAction>(kit) : serve_goals_as<BytesAction>(kit);
}
