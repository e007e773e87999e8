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
  virtual void drain() {}
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
  void drain() override { publisher_.drain(); }

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

// Returns the weakest QoS of the parts, which is the guarantee of the member.
inline const rmw_qos_profile_t* weakest(const std::vector<std::unique_ptr<MemberPart>>& parts) {
  for (const auto& part : parts) {
    const rmw_qos_profile_t* granted = part->granted();
    if (granted == nullptr || granted->reliability != RMW_QOS_POLICY_RELIABILITY_RELIABLE ||
        granted->history != RMW_QOS_POLICY_HISTORY_KEEP_ALL)
      return granted;
  }
  return parts.front()->granted();
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
  auto matched = [&] {
    int64_t total = 0;
    for (size_t number = 0; number < parts.size(); ++number)
      total += std::min(parts[number]->matched(), kit.parts()[number]->integer("peers.count"));
    return total;
  };
  kit.await_peers(matched, turn);
  const int64_t discovery_ns = wattwire::now_ns() - created_ns;
  std::vector<wattwire::Object> entries;
  for (size_t number = 0; number < parts.size(); ++number) {
    const auto effective = Session::effective_qos(parts[number]->granted());
    entries.push_back(kit.parts()[number]->entry(parts[number]->matched(), effective));
  }
  session.ready(matched(), discovery_ns, weakest(parts), entries);
  auto send = [&](size_t number, wattwire::Bytes buffer) { return parts[number]->send(buffer); };
  kit.drive_parts(send, turn);
  for (const auto& part : parts) part->drain();
}
