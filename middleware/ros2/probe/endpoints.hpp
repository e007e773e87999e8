// Endpoints of a topic: publishers and subscriptions of all nodes, with their QoS.

#pragma once

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>
#include <rmw/qos_profiles.h>
#include <rmw/qos_string_conversions.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "facts.hpp"

// Returns and clears rcl's last error message.
inline std::string take_error() {
  const std::string reason = rcl_get_error_string().str;
  rcl_reset_error();
  return reason;
}

inline void check(rcl_ret_t code, const char* what) {
  if (code != RCL_RET_OK) throw std::runtime_error(what + (": " + take_error()));
}

inline void ignore(rcl_ret_t /*code*/) { rcl_reset_error(); }

// The first 16 bytes of a gid, which are all that a middleware uses.
using Gid = std::array<uint8_t, 16>;

inline Gid gid_of(const uint8_t* bytes) {
  Gid gid;
  std::memcpy(gid.data(), bytes, gid.size());
  return gid;
}

inline std::string hex(const Gid& gid) {
  std::string text;
  char digits[3];
  for (const uint8_t byte : gid) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

// Returns the full name of a node, or "" while the graph does not have it yet.
inline std::string node_name(const std::string& space, const std::string& name) {
  if (name == "_NODE_NAME_UNKNOWN_") return "";
  return space + (space == "/" ? "" : "/") + name;
}

struct Endpoint {
  std::string node;  // "" if it is not known yet
  std::string type;
  Gid gid;
  rmw_qos_profile_t qos;
};

// Returns the publishers or the subscriptions of a topic, sorted by gid.
template <typename Query>
std::vector<Endpoint> endpoints_of(const rcl_node_t* node, const std::string& topic, Query query) {
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  rcl_topic_endpoint_info_array_t infos = rcl_get_zero_initialized_topic_endpoint_info_array();
  check(query(node, &allocator, topic.c_str(), false, &infos), "endpoints of a topic");
  std::vector<Endpoint> endpoints;
  for (size_t at = 0; at < infos.size; ++at) {
    const rmw_topic_endpoint_info_t& info = infos.info_array[at];
    endpoints.push_back({node_name(info.node_namespace, info.node_name), info.topic_type,
                         gid_of(info.endpoint_gid), info.qos_profile});
  }
  ignore(rcl_topic_endpoint_info_array_fini(&infos, &allocator));
  std::sort(endpoints.begin(), endpoints.end(),
            [](const Endpoint& a, const Endpoint& b) { return a.gid < b.gid; });
  return endpoints;
}

inline std::vector<Endpoint> of_type(const std::vector<Endpoint>& endpoints,
                                     const std::string& type) {
  std::vector<Endpoint> matching;
  std::copy_if(endpoints.begin(), endpoints.end(), std::back_inserter(matching),
               [&](const Endpoint& endpoint) { return endpoint.type == type; });
  return matching;
}

inline std::string text_or_unknown(const char* text) { return text == nullptr ? "unknown" : text; }

// Returns the QoS that the graph has. A middleware may not announce history and depth.
inline std::string qos_json(const rmw_qos_profile_t& qos) {
  Fact fact;
  fact.text("reliability", text_or_unknown(rmw_qos_reliability_policy_to_str(qos.reliability)));
  fact.text("durability", text_or_unknown(rmw_qos_durability_policy_to_str(qos.durability)));
  fact.text("history", text_or_unknown(rmw_qos_history_policy_to_str(qos.history)));
  fact.number("depth", static_cast<int64_t>(qos.depth));
  return fact.json();
}

// Returns the reason why two endpoints can never exchange messages, or "".
inline std::string mismatch(const rmw_qos_profile_t& offered, const rmw_qos_profile_t& requested) {
  rmw_qos_compatibility_type_t compatibility = RMW_QOS_COMPATIBILITY_OK;
  char reason[512] = "";
  const rmw_ret_t code =
      rmw_qos_profile_check_compatible(offered, requested, &compatibility, reason, sizeof reason);
  if (code != RMW_RET_OK) rcl_reset_error();
  return code == RMW_RET_OK && compatibility == RMW_QOS_COMPATIBILITY_ERROR ? reason : "";
}

// Returns the QoS of a subscription that matches all these publishers: what all of them offer.
// Deadline and liveliness are not requested. The depth is the probe's own, so that it loses nothing
// while it waits for a CPU; with keep_last, it never holds up a publisher.
inline rmw_qos_profile_t common_qos(const std::vector<Endpoint>& publishers, size_t depth) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.history = RMW_QOS_POLICY_HISTORY_KEEP_LAST;
  qos.depth = depth;
  qos.reliability = RMW_QOS_POLICY_RELIABILITY_RELIABLE;
  qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  for (const Endpoint& publisher : publishers) {
    if (publisher.qos.reliability != RMW_QOS_POLICY_RELIABILITY_RELIABLE)
      qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    if (publisher.qos.durability != RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL)
      qos.durability = RMW_QOS_POLICY_DURABILITY_VOLATILE;
  }
  return qos;
}
