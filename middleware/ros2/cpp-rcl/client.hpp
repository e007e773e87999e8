// Service and pingpong patterns, client side: blocking calls, or callbacks under a ROS timer.

#pragma once

#include <rcl/client.h>

#include <map>
#include <optional>
#include <string>

#include "messages.hpp"
#include "schedule.hpp"

template <typename Type>
class Client {
 public:
  explicit Client(Session& session) : session_(session) {
    rcl_client_options_t options = rcl_client_get_default_options();
    options.qos = session.qos(false);
    check(rcl_client_init(&client_, session.node(), Type::support(),
                          session.name("service").c_str(), &options),
          "rcl_client_init");
  }
  ~Client() { ignore(rcl_client_fini(&client_, session_.node())); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int64_t available() {
    bool available = false;
    check(rcl_service_server_is_available(session_.node(), &client_, &available), "availability");
    return available ? 1 : 0;
  }

  const rmw_qos_profile_t* granted() const {
    return rcl_client_request_publisher_get_actual_qos(&client_);
  }

  void add_to(rcl_wait_set_t* set) {
    check(rcl_wait_set_add_client(set, &client_, nullptr), "add client");
  }

  // Sends a request and returns ROS's number of it.
  int64_t send(wattwire::Bytes buffer) {
    assign(request_.message.request, buffer);
    int64_t number = 0;
    if (rcl_send_request(&client_, &request_.message, &number) != RCL_RET_OK) {
      throw wattwire::SendFailed(take_error());
    }
    return number;
  }

  // Takes a reply and returns ROS's number of its request, or nullopt if there is no reply.
  // `reply()` then returns its field.
  std::optional<int64_t> take(const rcl_wait_set_t* set) {
    if (set->clients[0] == nullptr) return std::nullopt;
    rmw_request_id_t id;
    if (rcl_take_response(&client_, &id, &response_.message) == RCL_RET_OK) {
      return id.sequence_number;
    }
    rcl_reset_error();
    return std::nullopt;
  }

  wattwire::Bytes reply() const { return view(response_.message.reply); }

  std::optional<wattwire::Bytes> call(wattwire::Bytes buffer, int64_t timeout_ns) {
    const int64_t deadline_ns = wattwire::now_ns() + timeout_ns;
    const int64_t number = send(buffer);
    auto add = [this](rcl_wait_set_t* set) { add_to(set); };
    for (int64_t left_ns; (left_ns = deadline_ns - wattwire::now_ns()) > 0;) {
      if (take(session_.wait(left_ns, add)) == number) return reply();
    }
    return std::nullopt;
  }

 private:
  Session& session_;
  rcl_client_t client_ = rcl_get_zero_initialized_client();
  Owned<typename Type::Request> request_;
  Owned<typename Type::Reply> response_;
};

template <typename Type>
void call_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  Client<Type> client(session);
  auto add = [&](rcl_wait_set_t* set) { client.add_to(set); };
  auto call = [&](wattwire::Bytes buffer, int64_t timeout_ns) {
    return client.call(buffer, timeout_ns);
  };
  kit.await_peers([&] { return client.available(); },
                  [&](int64_t timeout_ns) { client.take(session.wait(timeout_ns, add)); });
  // The server may discover this client's reader after its writer, and then loses the first
  // replies.
  kit.probe(call);
  session.ready(1, wattwire::now_ns() - created_ns, client.granted());
  const bool scheduled = kit.string("loop") == "open";
  const bool native = scheduled && kit.string("pacing") == "native";
  if (!native && (!scheduled || kit.integer("outstanding_max") == 1)) {
    kit.call_all(call);
    return;
  }
  std::map<int64_t, wattwire::Slot*> open;
  auto act = [&](wattwire::Slot* slot, wattwire::Bytes buffer) {
    open[client.send(buffer)] = slot;
  };
  auto take = [&](const rcl_wait_set_t* set) {
    const std::optional<int64_t> number = client.take(set);
    const auto entry = number ? open.find(*number) : open.end();
    if (entry == open.end()) return;
    kit.complete(entry->second, client.reply());
    open.erase(entry);
  };
  if (native) {
    drive_native(session, act, add, take);
  } else {
    kit.drive(act, [&](int64_t timeout_ns) { take(session.wait(timeout_ns, add)); });
  }
}

inline void call(wattwire::Kit& kit) {
  kit.text() ? call_as<TextService>(kit) : call_as<BytesService>(kit);
}
