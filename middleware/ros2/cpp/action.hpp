// Action pattern: accept, publish feedback, answer with a result; several goals may be open.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <rclcpp_action/rclcpp_action.hpp>
#include <utility>

#include "interfaces.hpp"
#include "session.hpp"

template <typename Types>
void serve_goals_as(wattwire::Kit& kit) {
  using Action = typename Types::Action;
  using Handle = rclcpp_action::ServerGoalHandle<Action>;
  Session session(kit);
  std::map<rclcpp_action::GoalUUID, wattwire::Goal> accepted;  // the kit's goal beside ROS's
  auto on_goal = [&](const rclcpp_action::GoalUUID& id,
                     std::shared_ptr<const typename Action::Goal> request) {
    std::optional<wattwire::Goal> goal = kit.goal(view(request->goal));
    if (!goal) return rclcpp_action::GoalResponse::REJECT;
    accepted.insert_or_assign(id, std::move(*goal));
    return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
  };
  auto on_cancel = [](std::shared_ptr<Handle>) { return rclcpp_action::CancelResponse::REJECT; };
  auto on_accepted = [&](std::shared_ptr<Handle> handle) {
    auto found = accepted.extract(handle->get_goal_id());
    wattwire::Goal& goal = found.mapped();
    kit.accept(goal);
    auto feedback = std::make_shared<typename Action::Feedback>();
    for (int64_t count = kit.feedback_count(); count > 0; --count) {
      assign(feedback->feedback, kit.feedback_begin(goal));
      handle->publish_feedback(feedback);
      kit.feedback_sent(goal);
    }
    auto result = std::make_shared<typename Action::Result>();
    assign(result->result, kit.result(goal));
    handle->succeed(result);
    kit.finish_goal(goal);
  };
  const rmw_qos_profile_t qos = session.qos(false).get_rmw_qos_profile();
  rcl_action_server_options_t options = rcl_action_server_get_default_options();
  options.goal_service_qos = options.result_service_qos = options.feedback_topic_qos = qos;
  const auto server = rclcpp_action::create_server<Action>(
      session.node(), session.name("action"), on_goal, on_cancel, on_accepted, options);
  session.await_clients(session.name("action") + "/_action/send_goal", session.qos(false));
  session.spin_until_end();
}

template <typename Types>
class GoalSender {
 public:
  using Action = typename Types::Action;
  using Handle = rclcpp_action::ClientGoalHandle<Action>;
  using Options = typename rclcpp_action::Client<Action>::SendGoalOptions;

  explicit GoalSender(Session& session) : session_(session), kit_(session.kit()) {
    const rmw_qos_profile_t qos = session.qos(false).get_rmw_qos_profile();
    rcl_action_client_options_t options = rcl_action_client_get_default_options();
    options.goal_service_qos = options.result_service_qos = options.feedback_topic_qos = qos;
    client_ = rclcpp_action::create_client<Action>(session.node(), session.name("action"), nullptr,
                                                   options);
  }

  int64_t available() const { return client_->action_server_is_ready() ? 1 : 0; }

  void send(wattwire::Slot* slot, wattwire::Bytes buffer) {
    Options options;
    options.goal_response_callback = [this, slot](typename Handle::SharedPtr handle) {
      handle ? kit_.accepted(slot) : kit_.fail(slot);
      session_.settle();
    };
    if (kit_.feedback_count() > 0) {
      options.feedback_callback = [this, slot](
                                      typename Handle::SharedPtr,
                                      const std::shared_ptr<const typename Action::Feedback> told) {
        kit_.feedback(view(told->feedback), slot);
      };
    }
    options.result_callback = [this, slot](const typename Handle::WrappedResult& told) {
      kit_.complete(slot, view(told.result->result));
      session_.settle();
    };
    submit(buffer, options);
  }

  // One goal, waited for: nothing unless acceptance, every feedback and the result arrive in time.
  std::optional<wattwire::Bytes> probe(wattwire::Bytes buffer, int64_t timeout_ns) {
    const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
    // Shared: answers may come after the time is up.
    struct Told {
      int64_t feedback = 0;
      std::shared_ptr<typename Action::Result> result;
    };
    auto told = std::make_shared<Told>();
    Options options;
    options.feedback_callback = [told](auto, auto) { ++told->feedback; };
    options.result_callback = [told](const typename Handle::WrappedResult& wrapped) {
      told->result = wrapped.result;
    };
    submit(buffer, options);
    for (int64_t left_ns; (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
      session_.spin_once(left_ns);
      if (told->result == nullptr || told->feedback < kit_.feedback_count()) continue;
      probed_ = told->result;
      return view(probed_->result);
    }
    return std::nullopt;
  }

 private:
  void submit(wattwire::Bytes buffer, const Options& options) {
    typename Action::Goal goal;
    assign(goal.goal, buffer);
    try {
      client_->async_send_goal(goal, options);
    } catch (const rclcpp::exceptions::RCLError& error) {
      throw wattwire::SendFailed(error.what());
    }
  }

  Session& session_;
  wattwire::Kit& kit_;
  typename rclcpp_action::Client<Action>::SharedPtr client_;
  std::shared_ptr<typename Action::Result> probed_;
};

template <typename Types>
void perform_as(wattwire::Kit& kit) {
  Session session(kit);
  GoalSender<Types> sender(session);
  kit.await_peers([&] { return sender.available(); },
                  [&](int64_t timeout_ns) { session.spin_once(timeout_ns); });
  // ROS calls a server ready from its graph; its five channels are matched one by one.
  kit.probe([&](wattwire::Bytes buffer, int64_t ns) { return sender.probe(buffer, ns); });
  session.ready(1, session.qos(false));
  session.drive([&](wattwire::Slot* slot, wattwire::Bytes buffer) { sender.send(slot, buffer); });
}

inline void serve_goals(wattwire::Kit& kit) {
  kit.text() ? serve_goals_as<TextTypes>(kit) : serve_goals_as<BytesTypes>(kit);
}

inline void perform(wattwire::Kit& kit) {
  kit.text() ? perform_as<TextTypes>(kit) : perform_as<BytesTypes>(kit);
}
