// Service and pingpong patterns, server side: ExchangeText or ExchangeBytes.

#pragma once

#include <rcl/service.h>

#include <optional>
#include <string>

#include "messages.hpp"
#include "session.hpp"

template <typename Type>
void serve_as(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  rcl_service_options_t options = rcl_service_get_default_options();
  options.qos = session.qos(false);
  const std::string name = session.name("service");
  rcl_service_t service = rcl_get_zero_initialized_service();
  check(rcl_service_init(&service, session.node(), Type::support(), name.c_str(), &options),
        "rcl_service_init");
  Owned<typename Type::Request> request;
  Owned<typename Type::Reply> response;
  auto spin = [&](int64_t timeout_ns) {
    rcl_wait_set_t* set = session.wait(timeout_ns, [&](rcl_wait_set_t* empty) {
      check(rcl_wait_set_add_service(empty, &service, nullptr), "add service");
    });
    if (set->services[0] == nullptr) return;
    rmw_request_id_t id;
    if (rcl_take_request(&service, &id, &request.message) != RCL_RET_OK) {
      rcl_reset_error();
      return;
    }
    const std::optional<wattwire::Bytes> reply = kit.serve(view(request.message.request));
    if (!reply) return;
    assign(response.message.reply, *reply);
    if (rcl_send_response(&service, &id, &response.message) != RCL_RET_OK) {
      rcl_reset_error();  // the client has left
      return;
    }
    kit.served();
  };
  int64_t matched = -1;
  int64_t discovery_ns = -1;
#ifndef WATTWIRE_ROS_HUMBLE
  auto clients = [&] { return session.count_clients(name); };
  kit.await_peers(clients, spin);
  matched = clients();
  discovery_ns = wattwire::now_ns() - created_ns;
#endif
  session.ready(matched, discovery_ns, rcl_service_request_subscription_get_actual_qos(&service));
  session.spin_until_end(spin);
  check(rcl_service_fini(&service, session.node()), "rcl_service_fini");
}

inline void serve(wattwire::Kit& kit) {
  kit.text() ? serve_as<TextService>(kit) : serve_as<BytesService>(kit);
}
