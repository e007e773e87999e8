// The probe: a node that subscribes to the topics of the graph and records each message.

#pragma once

#include <rmw/rmw.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "endpoints.hpp"
#include "facts.hpp"
#include "message_types.hpp"
#include "records.hpp"

inline constexpr size_t kDepth = 1000;
// Messages that the probe takes from a topic before it looks at the next one.
inline constexpr int kTakenAtOnce = 32;

inline int64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Reads both clocks, again if the process lost its CPU in between: their difference shows when the
// wall clock is set.
inline void read_clocks(Record& record) {
  constexpr int64_t kApartNsMax = 20'000;
  for (int tries = 0; tries < 4; ++tries) {
    record.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    record.taken_ns = clock_ns(CLOCK_REALTIME);
    if (clock_ns(CLOCK_MONOTONIC) - record.monotonic_ns < kApartNsMax) return;
  }
}

class Subscription {
 public:
  Subscription(rcl_node_t* node, const std::string& topic, const MessageType& type,
               const rmw_qos_profile_t& qos)
      : node_(node), stamp_(type.stamp), qos_(qos) {
    rcl_subscription_options_t options = rcl_subscription_get_default_options();
    options.qos = qos;
    check(rcl_subscription_init(&subscription_, node, type.support, topic.c_str(), &options),
          "rcl_subscription_init");
  }
  ~Subscription() { ignore(rcl_subscription_fini(&subscription_, node_)); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  const rcl_subscription_t* handle() const { return &subscription_; }
  const rmw_qos_profile_t& qos() const { return qos_; }
  StampPlace stamp() const { return stamp_; }

  int64_t matched() const {
    size_t count = 0;
    ignore(rcl_subscription_get_publisher_count(&subscription_, &count));
    return static_cast<int64_t>(count);
  }

 private:
  rcl_node_t* node_;
  const StampPlace stamp_;
  const rmw_qos_profile_t qos_;
  rcl_subscription_t subscription_ = rcl_get_zero_initialized_subscription();
};

class Probe {
 public:
  Probe(const Arguments& arguments, FactFile& facts, RecordFiles& records)
      : arguments_(arguments), facts_(facts), records_(records) {
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    check(rcl_init_options_init(&options, allocator_), "rcl_init_options_init");
    check(rcl_init(0, nullptr, &options, &context_), "rcl_init");
    check(rcl_init_options_fini(&options), "rcl_init_options_fini");
    rcl_node_options_t node_options = rcl_node_get_default_options();
    node_options.enable_rosout = false;  // the probe publishes nothing
    const std::string name = "_wattwire_probe_" + std::to_string(getpid());
    check(rcl_node_init(&node_, name.c_str(), "", &context_, &node_options), "rcl_node_init");
    own_name_ = "/" + name;
    message_ = rmw_get_zero_initialized_serialized_message();
    check(rmw_serialized_message_init(&message_, 0, &allocator_), "serialized message");
    resize();
  }

  ~Probe() {
    topics_.clear();
    ignore(rmw_serialized_message_fini(&message_));
    ignore(rcl_wait_set_fini(&wait_set_));
    ignore(rcl_node_fini(&node_));
    ignore(rcl_shutdown(&context_));
    ignore(rcl_context_fini(&context_));
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Waits for messages or a change of the graph, and records the messages. Returns whether the
  // graph has changed.
  bool turn(int64_t timeout_ns) {
    check(rcl_wait_set_clear(&wait_set_), "rcl_wait_set_clear");
    for (const Topic* topic : waited_) {
      const rcl_subscription_t* handle = topic->subscription->handle();
      check(rcl_wait_set_add_subscription(&wait_set_, handle, nullptr), "add");
    }
    const rcl_guard_condition_t* graph = rcl_node_get_graph_guard_condition(&node_);
    check(rcl_wait_set_add_guard_condition(&wait_set_, graph, nullptr), "graph condition");
    const rcl_ret_t code = rcl_wait(&wait_set_, timeout_ns);
    if (code == RCL_RET_TIMEOUT) return false;
    check(code, "rcl_wait");
    for (size_t at = 0; at < waited_.size(); ++at) {
      if (wait_set_.subscriptions[at] != nullptr) take_all(*waited_[at]);
    }
    return wait_set_.guard_conditions[0] != nullptr;
  }

  // Reads the graph, writes what is new, and subscribes to new topics.
  void scan() {
    rcl_names_and_types_t names = rcl_get_zero_initialized_names_and_types();
    check(rcl_get_topic_names_and_types(&node_, &allocator_, false, &names), "topics");
    std::vector<std::string> present;
    std::string excluded;
    for (size_t at = 0; at < names.names.size; ++at) {
      const std::string topic = names.names.data[at];
      if (is_wanted(arguments_, topic)) {
        present.push_back(topic);
      } else {
        excluded += (excluded.empty() ? "" : ",") + quoted(topic);
      }
    }
    ignore(rcl_names_and_types_fini(&names));
    facts_.write_if_new("graph", Fact("graph")
                                     .number("topics", static_cast<int64_t>(present.size()))
                                     .raw("excluded", "[" + excluded + "]"));
    for (const std::string& topic : present) scan_topic(topic);
    note_ended_publishers();
    note_node_names();
  }

 private:
  struct Topic {
    std::string name;
    MessageType type;
    std::string type_name;
    std::string problem;        // why it is not read
    int64_t subscribed_ns = 0;  // CLOCK_REALTIME before the first subscription
    std::unique_ptr<Subscription> subscription;
    std::vector<Gid> read;  // its publishers of this type, at the last scan
  };
  struct Publisher {
    uint32_t index;
    bool was_present = false;  // in the graph, at the last scan
    bool is_present = false;
  };

  void take_all(const Topic& topic) {
    const Subscription& subscription = *topic.subscription;
    for (int count = 0; count < kTakenAtOnce; ++count) {
      rmw_message_info_t info = rmw_get_zero_initialized_message_info();
      const rcl_ret_t code =
          rcl_take_serialized_message(subscription.handle(), &message_, &info, nullptr);
      if (code != RCL_RET_OK) {
        rcl_reset_error();  // RCL_RET_SUBSCRIPTION_TAKE_FAILED: all messages are taken
        return;
      }
      Record record;
      read_clocks(record);
      record.source_ns = info.source_timestamp;
      record.received_ns = info.received_timestamp;
      record.stamp_ns = stamp_ns(subscription.stamp(), message_.buffer, message_.buffer_length);
      record.sequence = info.publication_sequence_number;
      record.bytes = static_cast<uint32_t>(message_.buffer_length);
      record.stream = stream_of(topic, gid_of(info.publisher_gid.data));
      records_.append(record);
    }
  }

  // Cyclone DDS marks a message with 8 bytes of its own instead of the gid of the publisher. Among
  // several publishers, their messages can be told apart, but not attributed to a node.
  uint32_t stream_of(const Topic& topic, const Gid& gid) {
    const bool is_gid = std::any_of(gid.begin() + 8, gid.end(), [](uint8_t byte) { return byte; });
    if (is_gid) return publisher(gid).index;
    const auto known = marked_.find(gid);
    if (known != marked_.end()) return known->second;
    const uint32_t index =
        topic.read.size() == 1 ? publisher(topic.read.front()).index : note_unknown(topic, gid);
    return marked_.emplace(gid, index).first->second;
  }

  uint32_t note_unknown(const Topic& topic, const Gid& gid) {
    const uint32_t index = publisher(gid).index;
    Fact fact("stream");
    fact.number("index", index).text("gid", hex(gid)).text("topic", topic.name).text("node", "");
    fact.text("type", topic.type_name).flag("read", true);
    fact.raw("qos", qos_json(topic.subscription->qos())).raw("same_host", "null");
    facts_.write(fact);
    return index;
  }

  Publisher& publisher(const Gid& gid) {
    const auto known = publishers_.find(gid);
    if (known != publishers_.end()) return known->second;
    const auto index = static_cast<uint32_t>(publishers_.size());
    facts_.write(Fact("stream").number("index", index).text("gid", hex(gid)));
    return publishers_.emplace(gid, Publisher{index}).first->second;
  }

  void scan_topic(const std::string& name) {
    const auto publishers = endpoints_of(&node_, name, rcl_get_publishers_info_by_topic);
    const auto subscribers = endpoints_of(&node_, name, rcl_get_subscriptions_info_by_topic);
    for (const Endpoint& subscriber : subscribers) {
      if (subscriber.node == own_name_) own_gid_ = subscriber.gid;
    }
    Topic& topic = topics_[name];
    topic.name = name;
    topic.read.clear();
    if (!publishers.empty()) subscribe(name, topic, publishers);
    for (const Endpoint& endpoint : publishers) {
      const bool is_read = topic.subscription != nullptr && endpoint.type == topic.type_name;
      if (is_read) topic.read.push_back(endpoint.gid);
      note_publisher(name, endpoint, is_read);
      for (const Endpoint& subscriber : subscribers) {
        if (subscriber.node != own_name_) note_mismatch(name, endpoint, subscriber);
      }
    }
    Fact fact("topic");
    fact.text("topic", name).text("type", topic.type_name).text("problem", topic.problem);
    fact.number("publishers", static_cast<int64_t>(publishers.size()));
    fact.number("readable", static_cast<int64_t>(topic.read.size()));
    if (topic.subscription != nullptr) {
      fact.number("matched", topic.subscription->matched());
      fact.number("subscribed_ns", topic.subscribed_ns);
      fact.flag("stamped", topic.subscription->stamp() != StampPlace::kNone);
      fact.raw("read_with", qos_json(topic.subscription->qos()));
    }
    facts_.write_if_new("topic " + name, fact);
  }

  // Subscribes to a topic, again if a new publisher offers less than the subscription requests.
  void subscribe(const std::string& name, Topic& topic, const std::vector<Endpoint>& publishers) {
    if (!topic.problem.empty()) return;
    if (topic.type_name.empty()) {
      topic.type_name = publishers.front().type;
      try {
        topic.type = load_type(topic.type_name);
      } catch (const std::runtime_error& error) {
        topic.problem = error.what();
        return;
      }
    }
    std::vector<Endpoint> readable;
    for (const Endpoint& endpoint : publishers) {
      if (endpoint.type == topic.type_name) readable.push_back(endpoint);
    }
    if (readable.empty()) return;
    const rmw_qos_profile_t qos = common_qos(readable, kDepth);
    if (topic.subscription != nullptr) {
      const rmw_qos_profile_t& present = topic.subscription->qos();
      const bool is_weaker = (qos.reliability != present.reliability &&
                              present.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE) ||
                             (qos.durability != present.durability &&
                              present.durability == RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL);
      if (!is_weaker) return;
    }
    topic.subscription.reset();
    if (topic.subscribed_ns == 0) topic.subscribed_ns = clock_ns(CLOCK_REALTIME);
    try {
      topic.subscription = std::make_unique<Subscription>(&node_, name, topic.type, qos);
    } catch (const std::runtime_error& error) {
      topic.problem = error.what();
    }
    resize();
  }

  void note_publisher(const std::string& topic, const Endpoint& endpoint, bool is_read) {
    Publisher& known = publisher(endpoint.gid);
    known.is_present = true;
    Fact fact("stream");
    fact.number("index", known.index).text("gid", hex(endpoint.gid)).text("topic", topic);
    fact.text("node", endpoint.node).text("type", endpoint.type).flag("read", is_read);
    fact.raw("qos", qos_json(endpoint.qos)).raw("same_host", same_host(endpoint.gid));
    facts_.write_if_new("stream " + std::to_string(known.index), fact);
  }

  void note_mismatch(const std::string& topic, const Endpoint& publisher, const Endpoint& reader) {
    const std::string reason =
        publisher.type == reader.type ? mismatch(publisher.qos, reader.qos) : "different types";
    if (reason.empty() || publisher.node.empty() || reader.node.empty()) return;
    Fact fact("mismatch");
    fact.text("topic", topic).text("sending_node", publisher.node);
    fact.text("receiving_node", reader.node).text("reason", reason);
    facts_.write_if_new("mismatch " + topic + publisher.node + " " + reader.node, fact);
  }

  // A publisher that the graph no longer has. Of a killed one, the middleware learns it late.
  void note_ended_publishers() {
    for (auto& [gid, known] : publishers_) {
      if (known.was_present && !known.is_present) {
        facts_.write(Fact("gone")
                         .number("index", known.index)
                         .number("monotonic_ns", clock_ns(CLOCK_MONOTONIC)));
      }
      known.was_present = known.is_present;
      known.is_present = false;
    }
  }

  void note_node_names() {
    rcutils_string_array_t names = rcutils_get_zero_initialized_string_array();
    rcutils_string_array_t spaces = rcutils_get_zero_initialized_string_array();
    check(rcl_get_node_names(&node_, allocator_, &names, &spaces), "node names");
    std::map<std::string, int64_t> counts;
    for (size_t at = 0; at < names.size; ++at) {
      ++counts[node_name(spaces.data[at], names.data[at])];
    }
    ignore(rcutils_string_array_fini(&names));
    ignore(rcutils_string_array_fini(&spaces));
    Fact repeated;
    for (const auto& [name, count] : counts) {
      if (count > 1) repeated.number(name.c_str(), count);
    }
    const auto others = static_cast<int64_t>(counts.size()) - int64_t(counts.count(own_name_));
    facts_.write_if_new("nodes",
                        Fact("nodes").number("count", others).raw("repeated", repeated.json()));
  }

  // Fast DDS puts a number of the host into bytes 2 and 3 of its gids. Others do not: null.
  std::string same_host(const Gid& gid) const {
    const bool is_known = gid[0] == 0x01 && gid[1] == 0x0f && own_gid_[0] == 0x01;
    if (!is_known) return "null";
    return gid[2] == own_gid_[2] && gid[3] == own_gid_[3] ? "true" : "false";
  }

  void resize() {
    waited_.clear();
    for (const auto& [name, topic] : topics_) {
      if (topic.subscription != nullptr) waited_.push_back(&topic);
    }
    if (rcl_wait_set_is_valid(&wait_set_)) check(rcl_wait_set_fini(&wait_set_), "wait set");
    wait_set_ = rcl_get_zero_initialized_wait_set();
    check(rcl_wait_set_init(&wait_set_, waited_.size(), 1, 0, 0, 0, 0, &context_, allocator_),
          "rcl_wait_set_init");
  }

  const Arguments& arguments_;
  FactFile& facts_;
  RecordFiles& records_;
  rcl_allocator_t allocator_ = rcl_get_default_allocator();
  rcl_context_t context_ = rcl_get_zero_initialized_context();
  rcl_node_t node_ = rcl_get_zero_initialized_node();
  rcl_wait_set_t wait_set_ = rcl_get_zero_initialized_wait_set();
  rmw_serialized_message_t message_;
  std::string own_name_;
  Gid own_gid_{};
  std::map<std::string, Topic> topics_;
  std::vector<const Topic*> waited_;
  std::map<Gid, Publisher> publishers_;
  std::map<Gid, uint32_t> marked_;  // the mark of a message that is no gid, and its stream
};
