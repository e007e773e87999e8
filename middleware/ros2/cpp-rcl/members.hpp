// Member of a topology: a node with several publishers and subscriptions, which share one wait set.

#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "endpoints.hpp"

// A part of a member, without the type of its messages.
class MemberPart {
 public:
  virtual ~MemberPart() = default;
  virtual int64_t matched() const = 0;
  virtual const rmw_qos_profile_t* granted() const = 0;
  virtual bool send(wattwire::Bytes /*buffer*/) { return false; }
  virtual void add_to(rcl_wait_set_t* /*set*/) {}
  virtual void take(rcl_wait_set_t* /*set*/) {}
  virtual void await_acknowledgements(int64_t /*timeout_ns*/) {}
};

template <typename Type>
class PublishingPart : public MemberPart {
 public:
  PublishingPart(Session& session, const wattwire::Kit& kit)
      : publisher_(session, kit, kit.sending_topic()) {
    prepare(kit, owned_.message);
  }
  int64_t matched() const override { return publisher_.matched(); }
  const rmw_qos_profile_t* granted() const override { return publisher_.granted(); }
  bool send(wattwire::Bytes buffer) override {
    assign(owned_.message.data, buffer);
    return publisher_.publish(owned_.message);
  }
  void await_acknowledgements(int64_t timeout_ns) override {
    publisher_.await_acknowledgements(timeout_ns);
  }

 private:
  Publisher<Type> publisher_;
  Owned<Type> owned_;
};

template <typename Type>
class SubscribingPart : public MemberPart {
 public:
  SubscribingPart(Session& session, wattwire::Kit& kit)
      : kit_(kit), subscription_(session, kit, kit.receiving_topic()) {}
  int64_t matched() const override { return subscription_.matched(); }
  const rmw_qos_profile_t* granted() const override { return subscription_.granted(); }
  void add_to(rcl_wait_set_t* set) override { subscription_.add_to(set); }
  void take(rcl_wait_set_t* set) override {
    subscription_.take(
        set, [this](const typename Type::Message& message) { kit_.received(view(message.data)); });
  }

 private:
  wattwire::Kit& kit_;
  Subscription<Type> subscription_;
};

inline std::unique_ptr<MemberPart> make_part(Session& session, wattwire::Kit& kit) {
  std::unique_ptr<MemberPart> part;
  check_array(kit);
  with_type(kit, [&](auto type) {
    using Type = decltype(type);
    if (kit.publishes()) {
      part = std::make_unique<PublishingPart<Type>>(session, kit);
    } else {
      part = std::make_unique<SubscribingPart<Type>>(session, kit);
    }
  });
  return part;
}

// Returns the QoS of a member, each policy of which is the weakest of its parts.
inline rmw_qos_profile_t weakest(const std::vector<rmw_qos_profile_t>& granted) {
  rmw_qos_profile_t weakest = granted.front();
  for (const rmw_qos_profile_t& qos : granted) {
    if (qos.reliability != RMW_QOS_POLICY_RELIABILITY_RELIABLE)
      weakest.reliability = qos.reliability;
    if (qos.history != RMW_QOS_POLICY_HISTORY_KEEP_ALL) weakest.history = qos.history;
    weakest.depth = std::min(weakest.depth, qos.depth);
    if (qos.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE) weakest.durability = qos.durability;
  }
  return weakest;
}

inline void member(wattwire::Kit& kit) {
  Session session(kit);
  const int64_t created_ns = wattwire::now_ns();
  std::vector<std::unique_ptr<MemberPart>> parts;
  for (const auto& part : kit.parts()) parts.push_back(make_part(session, *part));
  auto turn = [&](int64_t timeout_ns) {
    rcl_wait_set_t* set = session.wait(timeout_ns, [&](rcl_wait_set_t* empty) {
      for (const auto& part : parts) part->add_to(empty);
    });
    for (const auto& part : parts) part->take(set);
  };
  auto matched = [&] {  // further peers of one part do not replace the peers of another
    int64_t total = 0;
    for (size_t number = 0; number < parts.size(); ++number)
      total += std::min(parts[number]->matched(), kit.parts()[number]->integer("peers.count"));
    return total;
  };
  kit.await_peers(matched, turn);
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  std::vector<wattwire::Object> entries;
  std::vector<rmw_qos_profile_t> granted;
  int64_t total = 0;
  for (size_t number = 0; number < parts.size(); ++number) {
    const auto effective = Session::effective_qos(parts[number]->granted());
    const int64_t count = parts[number]->matched();
    entries.push_back(kit.parts()[number]->entry(count, effective));
    granted.push_back(*parts[number]->granted());
    total += count;
  }
  const rmw_qos_profile_t of_member = weakest(granted);
  session.ready(total, discovery_ns, &of_member, entries);
  auto send = [&](size_t number, wattwire::Bytes buffer) { return parts[number]->send(buffer); };
  kit.drive_parts(send, turn);
  // Best-effort messages were sent while the member received for quiet_ms.
  const int64_t deadline_ns = wattwire::now_ns() + RCL_MS_TO_NS(kit.integer("linger_ms"));
  for (const auto& part : parts)
    part->await_acknowledgements(std::max<int64_t>(0, deadline_ns - wattwire::now_ns()));
}
