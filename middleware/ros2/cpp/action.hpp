// Action pattern: accepts goals, publishes feedback and returns results. Several goals may be open.

#pragma once

#include <functional>
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
  std::map<rclcpp_action::GoalUUID, wattwire::Goal> accepted;  // the kit's goals by ROS's ids
  auto on_goal = [&](const rclcpp_action::GoalUUID& id,
                     std::shared_ptr<const typename Action::Goal> request) {
    std::optional<wattwire::Goal> goal = kit.goal(view(request->goal));
    if (!goal) return rclcpp_action::GoalResponse::REJECT;
    accepted.insert_or_assign(id, std::move(*goal));
    return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
  };
  auto on_cancel = [](std::shared_ptr<Handle>) { return rclcpp_action::CancelResponse::REJECT; };
  auto on_accepted = [&](std::shared_ptr<Handle> handle) {
    auto entry = accepted.extract(handle->get_goal_id());
    wattwire::Goal& goal = entry.mapped();
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

// An action client that receives all feedback of its goals.
//
// rclcpp knows a goal only from its acceptance to its result and discards other feedback, so it
// loses a part of the feedback of a fast server.
template <typename Action>
class PatientClient : public rclcpp_action::Client<Action> {
 public:
  using rclcpp_action::Client<Action>::Client;
  using Heard = std::function<void(const rclcpp_action::GoalUUID&, wattwire::Bytes)>;

  void on_feedback(Heard heard) { heard_ = std::move(heard); }
  const rclcpp_action::GoalUUID& last_id() const { return last_id_; }

 protected:
  rclcpp_action::GoalUUID generate_goal_id() override {
    return last_id_ = rclcpp_action::Client<Action>::generate_goal_id();
  }

 private:
  void handle_feedback_message(std::shared_ptr<void> message) override {
    using Message = typename Action::Impl::FeedbackMessage;
    const auto typed = std::static_pointer_cast<Message>(message);
    heard_(typed->goal_id.uuid, view(typed->feedback.feedback));
  }

  Heard heard_;
  rclcpp_action::GoalUUID last_id_{};
};

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
    const rclcpp::Node::SharedPtr& node = session.node();
    if (kit_.string("settings.late_feedback") == "drop") {
      client_ =
          rclcpp_action::create_client<Action>(node, session.name("action"), nullptr, options);
      return;
    }
    patient_ = std::make_shared<PatientClient<Action>>(
        node->get_node_base_interface(), node->get_node_graph_interface(),
        node->get_node_logging_interface(), session.name("action"), options);
    patient_->on_feedback([this](const rclcpp_action::GoalUUID& id, wattwire::Bytes data) {
      // Every client of a server receives the feedback of all clients.
      const auto entry = awaited_.find(id);
      if (entry == awaited_.end()) return;
      entry->second.on_feedback(data);
      if (--entry->second.missing == 0) awaited_.erase(entry);
    });
    node->get_node_waitables_interface()->add_waitable(patient_, nullptr);
    client_ = patient_;
  }
  ~GoalSender() {
    if (patient_ == nullptr) return;
    session_.node()->get_node_waitables_interface()->remove_waitable(patient_, nullptr);
  }
  GoalSender(const GoalSender&) = delete;
  GoalSender& operator=(const GoalSender&) = delete;

  int64_t available() const { return client_->action_server_is_ready() ? 1 : 0; }

  void send(wattwire::Slot* slot, wattwire::Bytes buffer) {
    Options options;
    options.goal_response_callback = [this, slot](typename Handle::SharedPtr handle) {
      handle ? kit_.accepted(slot) : kit_.fail(slot);
      session_.settle();
    };
    options.result_callback = [this, slot](const typename Handle::WrappedResult& wrapped) {
      const bool succeeded = wrapped.code == rclcpp_action::ResultCode::SUCCEEDED;
      succeeded ? kit_.complete(slot, view(wrapped.result->result)) : kit_.fail(slot);
      session_.settle();
    };
    submit(buffer, options, [this, slot](wattwire::Bytes data) { kit_.feedback(data, slot); });
  }

  // Waits at most quiet_ms for feedback that arrives after its result.
  void drain() {
    const int64_t until_ns = wattwire::now_ns() + kit_.integer("quiet_ms") * 1000000;
    for (int64_t left_ns; !awaited_.empty() && (left_ns = until_ns - wattwire::now_ns()) > 0;) {
      session_.spin_once(left_ns);
    }
  }

  // Sends a goal and waits for it. Returns nullopt unless its acceptance, all feedback and its
  // result arrive in time.
  std::optional<wattwire::Bytes> probe(wattwire::Bytes buffer, int64_t timeout_ns) {
    const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
    // Shared, because responses may arrive after the timeout.
    struct Responses {
      int64_t feedback = 0;
      std::shared_ptr<typename Action::Result> result;
    };
    auto responses = std::make_shared<Responses>();
    Options options;
    options.result_callback = [responses](const typename Handle::WrappedResult& wrapped) {
      responses->result = wrapped.result;
    };
    submit(buffer, options, [responses](wattwire::Bytes) { ++responses->feedback; });
    for (int64_t left_ns; (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
      session_.spin_once(left_ns);
      if (responses->result == nullptr || responses->feedback < kit_.feedback_count()) continue;
      probed_ = responses->result;
      return view(probed_->result);
    }
    return std::nullopt;
  }

 private:
  using OnFeedback = std::function<void(wattwire::Bytes)>;
  struct Awaited {
    OnFeedback on_feedback;
    int64_t missing;
  };

  void submit(wattwire::Bytes buffer, Options& options, OnFeedback on_feedback) {
    typename Action::Goal goal;
    assign(goal.goal, buffer);
    const int64_t missing = kit_.feedback_count();
    if (patient_ == nullptr && missing > 0) {
      options.feedback_callback = [on_feedback](auto, auto message) {
        on_feedback(view(message->feedback));
      };
    }
    try {
      client_->async_send_goal(goal, options);
      if (patient_ != nullptr && missing > 0)
        awaited_[patient_->last_id()] = {on_feedback, missing};
    } catch (const rclcpp::exceptions::RCLError& error) {
      throw wattwire::SendFailed(error.what());
    }
  }

  Session& session_;
  wattwire::Kit& kit_;
  typename rclcpp_action::Client<Action>::SharedPtr client_;
  std::shared_ptr<PatientClient<Action>> patient_;  // null if late feedback is dropped
  std::map<rclcpp_action::GoalUUID, Awaited> awaited_;
  std::shared_ptr<typename Action::Result> probed_;
};

template <typename Types>
void perform_as(wattwire::Kit& kit) {
  Session session(kit);
  GoalSender<Types> sender(session);
  kit.await_peers([&] { return sender.available(); },
                  [&](int64_t timeout_ns) { session.spin_once(timeout_ns); });
  // A probe is necessary, because ROS reports a server as ready before all five channels match.
  kit.probe([&](wattwire::Bytes buffer, int64_t ns) { return sender.probe(buffer, ns); });
  session.ready(1, session.qos(false));
  session.drive([&](wattwire::Slot* slot, wattwire::Bytes buffer) { sender.send(slot, buffer); });
  sender.drain();
}

inline void serve_goals(wattwire::Kit& kit) {
  kit.text() ? serve_goals_as<TextTypes>(kit) : serve_goals_as<BytesTypes>(kit);
}

inline void perform(wattwire::Kit& kit) {
  kit.text() ? perform_as<TextTypes>(kit) : perform_as<BytesTypes>(kit);
}
