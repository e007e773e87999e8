// Service and pingpong patterns: ExchangeText or ExchangeBytes, one field each way.

#pragma once

#include <memory>
#include <optional>

#include "interfaces.hpp"
#include "session.hpp"

// Returns the result of `send`. Converts errors of rcl to SendFailed.
template <typename Send>
auto or_send_failed(Send send) {
  try {
    return send();
  } catch (const rclcpp::exceptions::RCLError& error) {
    throw wattwire::SendFailed(error.what());
  }
}

template <typename Types>
void serve_as(wattwire::Kit& kit) {
  using Service = typename Types::Service;
  Session session(kit);
  typename Service::Response response;
  // Uses the callback that sends the reply itself, so that the node can record the sending.
  auto on_request = [&](std::shared_ptr<rclcpp::Service<Service>> service,
                        std::shared_ptr<rmw_request_id_t> header,
                        std::shared_ptr<typename Service::Request> request) {
    const std::optional<wattwire::Bytes> reply = kit.serve(view(request->request));
    if (!reply) return;
    assign(response.reply, *reply);
    try {
      service->send_response(*header, response);
    } catch (const rclcpp::exceptions::RCLError&) {
      return;  // the client has left
    }
    kit.served();
  };
  const auto service = session.node()->template create_service<Service>(
      session.name("service"), on_request, session.service_qos());
  session.await_clients(session.name("service"), service->get_request_subscription_actual_qos());
  session.spin_until_end();
}

template <typename Types>
class Client {
 public:
  using Service = typename Types::Service;
  using Endpoint = rclcpp::Client<Service>;

  explicit Client(Session& session)
      : session_(session),
        endpoint_(session.node()->template create_client<Service>(session.name("service"),
                                                                  session.service_qos())) {}

  Endpoint& endpoint() { return *endpoint_; }

  // Calls as in the tutorial. The reply is valid until the next call.
  std::optional<wattwire::Bytes> call(wattwire::Bytes buffer, int64_t timeout_ns) {
    assign(request_->request, buffer);
    auto pending = or_send_failed([&] { return endpoint_->async_send_request(request_); });
    const auto end = session_.executor().spin_until_future_complete(
        pending, std::chrono::nanoseconds(timeout_ns));
    if (end != rclcpp::FutureReturnCode::SUCCESS) {
      endpoint_->remove_pending_request(pending);
      return std::nullopt;
    }
    response_ = pending.get();
    return view(response_->reply);
  }

  void begin(wattwire::Slot* slot, wattwire::Bytes buffer) {
    assign(request_->request, buffer);
    or_send_failed([&] {
      endpoint_->async_send_request(request_, [this, slot](typename Endpoint::SharedFuture done) {
        session_.kit().complete(slot, view(done.get()->reply));
        session_.settle();
      });
    });
  }

 private:
  Session& session_;
  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<typename Service::Request> request_ =
      std::make_shared<typename Service::Request>();
  std::shared_ptr<typename Service::Response> response_;
};

template <typename Types>
void call_as(wattwire::Kit& kit) {
  Session session(kit);
  Client<Types> client(session);
  kit.await_peers([&] { return client.endpoint().service_is_ready() ? 1 : 0; },
                  [&](int64_t timeout_ns) { session.spin_once(timeout_ns); });
  auto call = [&](wattwire::Bytes buffer, int64_t timeout_ns) {
    return client.call(buffer, timeout_ns);
  };
  // The server may discover this client's reader after its writer, and then loses the first
  // replies.
  kit.probe(call);
  session.ready(1, client.endpoint().get_request_publisher_actual_qos());
  const bool scheduled = kit.string("loop") == "open";
  if (scheduled && (kit.string("pacing") == "native" || kit.integer("outstanding_max") > 1)) {
    session.drive(
        [&](wattwire::Slot* slot, wattwire::Bytes buffer) { client.begin(slot, buffer); });
  } else {
    kit.call_all(call);
  }
}

inline void serve(wattwire::Kit& kit) {
  kit.text() ? serve_as<TextTypes>(kit) : serve_as<BytesTypes>(kit);
}

inline void call(wattwire::Kit& kit) {
  kit.text() ? call_as<TextTypes>(kit) : call_as<BytesTypes>(kit);
}
