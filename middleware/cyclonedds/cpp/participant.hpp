// A participant with its domain, configuration and QoS; waiting, and the effective settings.

#pragma once

#include <dds/dds.h>
#include <dds/version.h>

#include <array>
#include <string>

#include "cipher.h"
#include "configuration.hpp"
#include "interface.hpp"
#include "security.hpp"

inline constexpr size_t kTakeMax = 32;
inline constexpr dds_duration_t kBlockingMax = DDS_MSECS(100);  // DDS's default

// Returns a handle or a count. Throws if the result is negative, which is an error.
inline dds_return_t check(dds_return_t result, const std::string& action) {
  if (result < 0) throw wattwire::MiddlewareFailed(action + ": " + dds_strretcode(-result));
  return result;
}

class Participant {
 public:
  explicit Participant(wattwire::Kit& kit) : kit_(kit), domain_(domain_of(kit)) {
    const std::string where = " in domain " + std::to_string(domain_) + " on " + interface_of(kit);
    handle_ = check(dds_create_domain(domain_, configuration(kit).c_str()), "no domain" + where);
    participant_ = dds_create_participant(domain_, nullptr, nullptr);
    check(participant_, "no participant" + where + log_.cause());
    stay_on(interface_of(kit));
    waitset_ = check(dds_create_waitset(participant_), "waitset");
    created_ns_ = wattwire::now_ns();
  }
  ~Participant() { dds_delete(handle_); }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  dds_entity_t writer(const std::string& name, const dds_topic_descriptor_t* type) {
    dds_qos_t* qos = wanted_qos();
    writer_ = dds_create_writer(participant_, topic(name, type), qos, nullptr);
    dds_delete_qos(qos);
    return check(writer_, "writer of " + name);
  }

  void reader(const std::string& name, const dds_topic_descriptor_t* type) {
    dds_qos_t* qos = wanted_qos();
    reader_ = dds_create_reader(participant_, topic(name, type), qos, nullptr);
    dds_delete_qos(qos);
    check(reader_, "reader of " + name);
    unread_ = check(dds_create_readcondition(reader_, DDS_ANY_STATE), "read condition");
    check(dds_waitset_attach(waitset_, unread_, 0), "attach");
  }

  // Waits for messages and calls `take(message)` for each.
  template <class Message, class Take>
  void take(int64_t timeout_ns, Take take_one) {
    check(dds_waitset_wait(waitset_, nullptr, 0, timeout_ns), "wait");
    std::array<void*, kTakeMax> samples = {};  // null: the library lends its samples
    std::array<dds_sample_info_t, kTakeMax> infos;
    const dds_return_t count =
        check(dds_take(unread_, samples.data(), infos.data(), kTakeMax, kTakeMax), "take");
    for (dds_return_t at = 0; at < count; ++at)
      if (infos[at].valid_data) take_one(*static_cast<const Message*>(samples[at]));
    if (count > 0) check(dds_return_loan(unread_, samples.data(), count), "return loan");
  }

  // Waits until the node has matched peers.count peers. The library logs why it refuses a peer.
  void await_matched() {
    try {
      kit_.await_peers([this] { return matched(); });
    } catch (const wattwire::MiddlewareFailed& error) {
      throw wattwire::MiddlewareFailed(error.what() + log_.cause());
    }
  }

  void ready() {
    dds_qos_t* qos = dds_create_qos();
    check(dds_get_qos(writer_ > 0 ? writer_ : reader_, qos), "get qos");
    dds_reliability_kind_t reliability;
    dds_history_kind_t history;
    dds_duration_t blocking;
    int32_t depth = 0;
    dds_qget_reliability(qos, &reliability, &blocking);
    dds_qget_history(qos, &history, &depth);
    dds_delete_qos(qos);
    const bool reliable = reliability == DDS_RELIABILITY_RELIABLE;
    const bool all = history == DDS_HISTORY_KEEP_ALL;
    wattwire::Ready ready;
    ready.matched = matched();
    ready.discovery_ns = wattwire::now_ns() - created_ns_;
    ready.library = {"Cyclone DDS", DDS_VERSION, "libddsc"};
    ready.effective["reliability"] = std::string(reliable ? "reliable" : "best_effort");
    ready.effective["history"] = std::string(all ? "keep_all" : "keep_last");
    if (!all) ready.effective["depth"] = int64_t{depth};
    ready.effective["interface"] = interface_of(kit_);
    ready.effective["domain"] = int64_t{domain_};
    ready.effective["transport"] = std::string("udp/ipv4");
    ready.effective["multicast"] =
        kit_.boolean("settings.multicast") && has_joined(interface_of(kit_));
    if (is_secured(kit_)) {
      ready.effective["security_protocol"] = loaded_protocol();
      ready.effective["security_cipher"] = std::string(cipher_of_encryption());
    }
    ready.guarantee = {reliable && all ? "reliable" : "best_effort", "per_sender",
                       !all       ? "drop_oldest"
                       : reliable ? "block"
                                  : "drop_newest"};
    kit_.ready(ready);
  }

 private:
  dds_entity_t topic(const std::string& name, const dds_topic_descriptor_t* type) {
    const std::string full = "wattwire_" + kit_.string("run") + "_" + name;
    const dds_entity_t topic = dds_create_topic(participant_, type, full.c_str(), nullptr, nullptr);
    if (topic == DDS_RETCODE_NOT_ALLOWED_BY_SECURITY)
      throw wattwire::MiddlewareFailed(refused_topic(full));
    return check(topic, "topic " + full);
  }

  std::string refused_topic(const std::string& name) const {
    return "topic " + name + " in domain " + std::to_string(domain_) +
           ": Not Allowed By Security; allow it in a publish and a subscribe rule of " +
           kit_.string("security.permissions");
  }

  dds_qos_t* wanted_qos() const {
    dds_qos_t* qos = dds_create_qos();
    const bool reliable = kit_.string("settings.reliability") == "reliable";
    const bool all = kit_.string("settings.history") == "keep_all";
    dds_qset_reliability(qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                         kBlockingMax);
    dds_qset_history(qos, all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST,
                     static_cast<int32_t>(kit_.integer("settings.depth", 1, INT32_MAX)));
    return qos;
  }

  // Returns the number of matched peers. A relay has predecessors and one successor, and 0 peers
  // until the successor is matched; other nodes have the same peers on all their topics.
  int64_t matched() const {
    int64_t readers = INT32_MAX, writers = INT32_MAX;
    if (writer_ > 0)
      readers = check(dds_get_matched_subscriptions(writer_, nullptr, 0), "matched readers");
    if (reader_ > 0)
      writers = check(dds_get_matched_publications(reader_, nullptr, 0), "matched writers");
    if (kit_.string("role") == "relay") return readers > 0 ? 1 + writers : 0;
    return std::min(readers, writers);
  }

  wattwire::Kit& kit_;
  LibraryLog log_;
  const dds_domainid_t domain_;
  dds_entity_t handle_ = 0, participant_ = 0, waitset_ = 0, writer_ = 0, reader_ = 0, unread_ = 0;
  int64_t created_ns_ = 0;
};
