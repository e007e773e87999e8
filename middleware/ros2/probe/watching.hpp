// The probe: a node that subscribes to the topics of the graph and records each message.

#pragma once

#include <rmw/rmw.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "endpoints.hpp"
#include "facts.hpp"
#include "message_types.hpp"
#include "records.hpp"
#include "streams.hpp"
#include "subscription.hpp"

inline constexpr size_t kDepth = 1000;
// Messages that the probe takes from a topic before it looks at the next one.
inline constexpr size_t kTakenAtOnce = 32;
// Time in which publishers learn of a new subscription, while the old one is still read.
inline constexpr int64_t kOverlapNs = 1'000'000'000;

// Returns a name that no other probe has, also on another host of the graph.
inline std::string new_node_name() {
  char token[9];
  std::snprintf(token, sizeof token, "%08x", std::random_device()());
  return "_wattwire_probe_" + std::to_string(getpid()) + "_" + token;
}

class Probe {
 public:
  Probe(const Arguments& arguments, FactFile& facts, RecordFiles& records)
      : arguments_(arguments), facts_(facts), records_(records), streams_(facts) {
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    check(rcl_init_options_init(&options, allocator_), "rcl_init_options_init");
    check(rcl_init(0, nullptr, &options, &context_), "rcl_init");
    check(rcl_init_options_fini(&options), "rcl_init_options_fini");
    rcl_node_options_t node_options = rcl_node_get_default_options();
    node_options.enable_rosout = false;  // the probe publishes nothing
    const std::string name = new_node_name();
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
    for (const Waited& waited : waited_) {
      check(rcl_wait_set_add_subscription(&wait_set_, waited.subscription->handle(), nullptr),
            "add");
    }
    const rcl_guard_condition_t* graph = rcl_node_get_graph_guard_condition(&node_);
    check(rcl_wait_set_add_guard_condition(&wait_set_, graph, nullptr), "graph condition");
    const rcl_ret_t code = rcl_wait(&wait_set_, timeout_ns);
    if (code == RCL_RET_TIMEOUT) return false;
    check(code, "rcl_wait");
    for (size_t at = 0; at < waited_.size(); ++at) {
      if (wait_set_.subscriptions[at] == nullptr) continue;
      Topic& topic = *waited_[at].topic;
      take(topic, *waited_[at].subscription, topic.overlap == nullptr ? kTakenAtOnce : kDepth);
    }
    return wait_set_.guard_conditions[0] != nullptr;
  }

  // Reads the graph, writes what is new, and subscribes to new topics.
  void scan() {
    end_overlaps();
    rcl_names_and_types_t names = rcl_get_zero_initialized_names_and_types();
    check(rcl_get_topic_names_and_types(&node_, &allocator_, false, &names), "topics");
    std::set<std::string> present;
    std::string excluded;
    for (size_t at = 0; at < names.names.size; ++at) {
      const std::string topic = names.names.data[at];
      if (is_wanted(arguments_, topic)) {
        present.insert(topic);
      } else {
        excluded += (excluded.empty() ? "" : ",") + quoted(topic);
      }
    }
    ignore(rcl_names_and_types_fini(&names));
    facts_.write_if_new("graph", Fact("graph")
                                     .number("topics", static_cast<int64_t>(present.size()))
                                     .raw("excluded", "[" + excluded + "]"));
    for (const std::string& name : present) scan_topic(name);
    for (auto& [name, topic] : topics_) {
      if (present.count(name) == 0) note_absent(topic);
    }
    streams_.note_ended();
    note_node_names();
  }

 private:
  struct Topic {
    std::string name;
    MessageType type;
    std::string type_name;
    std::string problem;       // why it is not read
    const char* cause = "";    // of the problem
    std::vector<Gid> failed;   // its publishers when it could not be subscribed to
    std::vector<Gid> present;  // its publishers, at the last scan
    int64_t readable = 0;      // number of those of this type
    int64_t resubscribed = 0;  // number of times
    int64_t errors = 0;        // failures to take a message or to query the topic
    std::string last_error;
    std::unique_ptr<Subscription> subscription;
    std::unique_ptr<Overlap> overlap;
  };
  struct Waited {
    Topic* topic;
    const Subscription* subscription;
  };

  void take(Topic& topic, const Subscription& subscription, size_t messages_max) {
    for (size_t count = 0; count < messages_max; ++count) {
      rmw_message_info_t info = rmw_get_zero_initialized_message_info();
      const rcl_ret_t code =
          rcl_take_serialized_message(subscription.handle(), &message_, &info, nullptr);
      if (code == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
        rcl_reset_error();  // all messages are taken
        return;
      }
      if (code != RCL_RET_OK) return note_error(topic, take_error());
      Record record;
      read_clocks(record);
      record.source_ns = info.source_timestamp;
      record.received_ns = info.received_timestamp;
      record.stamp_ns = stamp_ns(subscription.stamp(), message_.buffer, message_.buffer_length);
      record.sequence = info.publication_sequence_number;
      record.bytes = static_cast<uint32_t>(message_.buffer_length);
      record.stream = stream_of(topic, gid_of(info.publisher_gid.data));
      if (topic.overlap == nullptr || topic.overlap->is_first(record)) records_.append(record);
    }
  }

  uint32_t stream_of(Topic& topic, const Gid& gid) {
    if (!Streams::is_mark(gid)) return streams_.index_of(gid);
    if (const auto known = streams_.index_of_mark(gid)) return *known;
    return streams_.add_mark(gid, topic.name, topic.type_name, only_publisher(topic));
  }

  // Returns the publisher that the probe reads, if there is only one. The last scan may have
  // another one, which has ended since then.
  std::optional<Gid> only_publisher(Topic& topic) {
    std::vector<Endpoint> publishers;
    try {
      publishers = endpoints_of(&node_, topic.name, rcl_get_publishers_info_by_topic);
    } catch (const std::runtime_error& error) {
      note_error(topic, error.what());
    }
    const std::vector<Endpoint> readable = of_type(publishers, topic.type_name);
    return readable.size() == 1 ? std::optional(readable.front().gid) : std::nullopt;
  }

  static void note_error(Topic& topic, const std::string& reason) {
    ++topic.errors;
    topic.last_error = reason;
  }

  void scan_topic(const std::string& name) {
    Topic& topic = topics_[name];
    topic.name = name;
    std::vector<Endpoint> publishers, subscribers;
    try {
      publishers = endpoints_of(&node_, name, rcl_get_publishers_info_by_topic);
      subscribers = endpoints_of(&node_, name, rcl_get_subscriptions_info_by_topic);
    } catch (const std::runtime_error& error) {
      note_error(topic, error.what());
      for (const Gid& gid : topic.present) streams_.keep(gid);
      write_topic(topic);
      return;
    }
    for (const Endpoint& subscriber : subscribers) {
      if (subscriber.node == own_name_) own_gid_ = subscriber.gid;
    }
    topic.present.clear();
    for (const Endpoint& endpoint : publishers) topic.present.push_back(endpoint.gid);
    subscribe(topic, publishers);
    topic.readable = 0;
    for (const Endpoint& endpoint : publishers) {
      const bool is_read = topic.subscription != nullptr && endpoint.type == topic.type_name;
      topic.readable += is_read;
      streams_.note(name, endpoint, is_read, same_host(endpoint.gid), process_of(endpoint.gid));
      for (const Endpoint& subscriber : subscribers) {
        if (subscriber.node != own_name_) note_mismatch(name, endpoint, subscriber);
      }
    }
    for (const Endpoint& subscriber : subscribers) note_reader(name, subscriber);
    write_topic(topic);
  }

  // A subscription of another node. Hidden nodes, such as those of tools, are no part of a graph.
  void note_reader(const std::string& topic, const Endpoint& reader) {
    if (reader.node.empty() || reader.node[reader.node.rfind('/') + 1] == '_') return;
    Fact fact("reader");
    fact.text("topic", topic).text("node", reader.node).text("gid", hex(reader.gid));
    fact.raw("qos", qos_json(reader.qos)).raw("process", process_of(reader.gid));
    facts_.write_if_new("reader " + topic + hex(reader.gid), fact);
  }

  // A topic that the graph no longer has.
  void note_absent(Topic& topic) {
    topic.present.clear();
    topic.readable = 0;
    write_topic(topic);
  }

  void write_topic(const Topic& topic) {
    Fact fact("topic");
    fact.text("topic", topic.name).text("type", topic.type_name);
    fact.text("problem", topic.problem).text("cause", topic.cause);
    fact.number("publishers", static_cast<int64_t>(topic.present.size()));
    fact.number("readable", topic.readable);
    fact.number("errors", topic.errors).text("last_error", topic.last_error);
    if (topic.subscription != nullptr) {
      fact.number("matched", topic.subscription->matched());
      fact.number("subscribed_ns", topic.subscription->begin_ns());
      fact.number("subscribed_monotonic_ns", topic.subscription->begin_monotonic_ns());
      fact.number("resubscribed", topic.resubscribed);
      fact.flag("stamped", topic.subscription->stamp() != StampPlace::kNone);
      fact.raw("read_with", qos_json(topic.subscription->qos()));
    }
    facts_.write_if_new("topic " + topic.name, fact);
  }

  // Subscribes to a topic; again if its publishers offer another QoS, or have another type. After a
  // failure, only a change of the publishers can help.
  void subscribe(Topic& topic, const std::vector<Endpoint>& publishers) {
    if (publishers.empty() || topic.failed == topic.present) return;
    if (of_type(publishers, topic.type_name).empty()) close(topic);
    const char* cause = "type";
    std::unique_ptr<Subscription> subscription;
    try {
      if (topic.subscription == nullptr) choose_type(topic, publishers);
      cause = "subscription";
      subscription = better_subscription(topic, of_type(publishers, topic.type_name));
    } catch (const std::runtime_error& error) {
      topic.failed = topic.present;
      if (topic.subscription != nullptr) return note_error(topic, error.what());  // it still reads
      topic.problem = error.what();
      topic.cause = cause;
      return;
    }
    topic.failed.clear();
    topic.problem.clear();
    topic.cause = "";
    if (subscription != nullptr) replace(topic, std::move(subscription));
  }

  // Ends the subscription with a former type: a node cannot have a topic with two types.
  void close(Topic& topic) {
    if (topic.subscription == nullptr) return;
    if (topic.overlap != nullptr) end_overlap(topic);
    take(topic, *topic.subscription, kDepth);
    topic.subscription.reset();
    resize();
  }

  // Chooses the first type that is installed. Throws std::runtime_error if none is.
  static void choose_type(Topic& topic, const std::vector<Endpoint>& publishers) {
    std::string problem;
    for (const Endpoint& endpoint : publishers) {
      try {
        topic.type = load_type(endpoint.type);
        topic.type_name = endpoint.type;
        return;
      } catch (const std::runtime_error& error) {
        if (!problem.empty()) continue;
        problem = error.what();
        topic.type_name = endpoint.type;
      }
    }
    throw std::runtime_error(problem);
  }

  // Returns a subscription with what all publishers offer, or null if the present one has it. That
  // is not replaced only to get the history of publishers, which is from before.
  std::unique_ptr<Subscription> better_subscription(const Topic& topic,
                                                    const std::vector<Endpoint>& publishers) {
    rmw_qos_profile_t qos = common_qos(publishers, kDepth);
    if (topic.subscription != nullptr) {
      const rmw_qos_profile_t& present = topic.subscription->qos();
      if (present.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE) {
        qos.durability = RMW_QOS_POLICY_DURABILITY_VOLATILE;
      }
      if (qos.reliability == present.reliability && qos.durability == present.durability) {
        return nullptr;
      }
    }
    return std::make_unique<Subscription>(&node_, topic.name, topic.type, qos);
  }

  // Sets the subscription of a topic. A former one is read until the publishers know the new one.
  void replace(Topic& topic, std::unique_ptr<Subscription> subscription) {
    if (topic.overlap != nullptr) end_overlap(topic);
    if (topic.subscription != nullptr) {
      ++topic.resubscribed;
      topic.overlap = std::make_unique<Overlap>();
      topic.overlap->end_ns = clock_ns(CLOCK_MONOTONIC) + kOverlapNs;
      topic.overlap->subscription = std::move(topic.subscription);
    }
    topic.subscription = std::move(subscription);
    resize();
  }

  void end_overlaps() {
    for (auto& [name, topic] : topics_) {
      if (topic.overlap == nullptr || clock_ns(CLOCK_MONOTONIC) < topic.overlap->end_ns) continue;
      end_overlap(topic);
      resize();
    }
  }

  // Takes what both subscriptions have received, so that no copy follows the last comparison.
  void end_overlap(Topic& topic) {
    take(topic, *topic.overlap->subscription, kDepth);
    topic.overlap->subscription.reset();
    take(topic, *topic.subscription, kDepth);
    topic.overlap.reset();
  }

  void note_mismatch(const std::string& topic, const Endpoint& publisher, const Endpoint& reader) {
    const std::string reason =
        publisher.type == reader.type ? mismatch(publisher.qos, reader.qos) : "different types";
    if (reason.empty() || publisher.node.empty() || reader.node.empty()) return;
    Fact fact("mismatch");
    fact.text("topic", topic).text("sending_node", publisher.node);
    fact.text("receiving_node", reader.node).text("reason", reason);
    fact.text("sending_gid", hex(publisher.gid)).text("receiving_gid", hex(reader.gid));
    facts_.write_if_new("mismatch " + hex(publisher.gid) + hex(reader.gid), fact);
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

  // Fast DDS puts the lower 16 bits of the process's number into bytes 4 and 5 of its gids. Others
  // do not: null. That of another host, or of a container with its own numbers, matches no process.
  std::string process_of(const Gid& gid) const {
    if (same_host(gid) != "true") return "null";
    return Fact().number("pid", gid[4] | gid[5] << 8).number("modulus", 1 << 16).json();
  }

  void resize() {
    waited_.clear();
    for (auto& [name, topic] : topics_) {
      // The old subscription has the older messages. Taken first, they are in the order of arrival.
      if (topic.overlap != nullptr) waited_.push_back({&topic, topic.overlap->subscription.get()});
      if (topic.subscription != nullptr) waited_.push_back({&topic, topic.subscription.get()});
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
  Streams streams_;
  std::map<std::string, Topic> topics_;
  std::vector<Waited> waited_;
};
