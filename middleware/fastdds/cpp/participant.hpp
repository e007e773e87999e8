// A participant with at most one writer and one reader: QoS, matching, receiving and READY.

#pragma once

#include <algorithm>
#include <fastdds/config.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <string>

#include "configuration.hpp"
#include "types.hpp"

inline constexpr int64_t kNsPerS = 1000000000;

inline fastdds::Duration_t duration(int64_t ns) {
  return {static_cast<int32_t>(ns / kNsPerS), static_cast<uint32_t>(ns % kNsPerS)};
}

// Returns the entity, or throws if the library returned none.
template <class Entity>
Entity* created(Entity* entity, const std::string& description) {
  if (entity == nullptr) throw wattwire::MiddlewareFailed("Fast DDS created no " + description);
  return entity;
}

class Participant {
 public:
  Participant(wattwire::Kit& kit, Frame frame) : kit_(kit), domain_(domain_of(kit)) {
    ignore_foreign_configuration();
    participant_ = created(fastdds::DomainParticipantFactory::get_instance()->create_participant(
                               domain_, participant_qos(kit.string("settings.transports"))),
                           "participant in domain " + std::to_string(domain_));
    created_ns_ = wattwire::now_ns();
    type_ = fastdds::TypeSupport(new MessageType(kit.text() ? Body::kText : Body::kBytes, frame));
    if (type_.register_type(participant_) != fastdds::RETCODE_OK)
      throw wattwire::MiddlewareFailed("Fast DDS did not register the type " +
                                       type_.get_type_name());
  }
  // The library removes its shared-memory files here. Fast DDS 3.2 hangs here if a peer's end and
  // the timer of the announcements coincide (eProsima/Fast-DDS#6502). The kit then ends the
  // process.
  ~Participant() {
    end_crashes_with_code();
    participant_->delete_contained_entities();
    fastdds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
  }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  void open_writer(const std::string& name) {
    auto* publisher =
        created(participant_->create_publisher(fastdds::PUBLISHER_QOS_DEFAULT), "publisher");
    fastdds::DataWriterQos qos = fastdds::DATAWRITER_QOS_DEFAULT;
    set_qos(qos);
    writer_ = created(publisher->create_datawriter(topic(name), qos), "writer of " + name);
  }

  void open_reader(const std::string& name) {
    auto* subscriber =
        created(participant_->create_subscriber(fastdds::SUBSCRIBER_QOS_DEFAULT), "subscriber");
    fastdds::DataReaderQos qos = fastdds::DATAREADER_QOS_DEFAULT;
    set_qos(qos);
    reader_ = created(subscriber->create_datareader(topic(name), qos), "reader of " + name);
  }

  // Waits until the node has matched peers.count peers, and prints READY.
  void ready() {
    kit_.await_peers([this] { return matched(); });
    const auto& qos =
        writer_ != nullptr ? history_qos(writer_->get_qos()) : history_qos(reader_->get_qos());
    const bool shared = maps_shared_memory();
    const std::string& requested = kit_.string("settings.transports");
    if (shared != (requested != "udp"))
      throw wattwire::MiddlewareFailed("settings.transports = " + requested + ", but the process " +
                                       (shared ? "maps" : "does not map") +
                                       " shared memory (/dev/shm/fastdds_* in /proc/self/maps)");
    wattwire::Ready ready;
    ready.matched = matched();
    ready.discovery_ns = wattwire::now_ns() - created_ns_;
    ready.library = {"Fast DDS", FASTDDS_VERSION_STR, mapped_library()};
    ready.effective["reliability"] = std::string(qos.reliable ? "reliable" : "best_effort");
    ready.effective["history"] = std::string(qos.keep_all ? "keep_all" : "keep_last");
    if (!qos.keep_all) ready.effective["depth"] = qos.depth;
    ready.effective["transports"] = requested;
    ready.effective["domain"] = int64_t{domain_};
    ready.effective["interface"] = std::string(requested == "shm" ? "" : "lo");
    ready.guarantee = {qos.reliable && qos.keep_all ? "reliable" : "best_effort", "per_sender",
                       !qos.keep_all  ? "drop_oldest"
                       : qos.reliable ? "block"
                                      : "drop_newest"};
    kit_.ready(ready);
  }

  // Returns whether the library accepted the message.
  bool send(const Message& message) { return writer_->write(&message) == fastdds::RETCODE_OK; }

  // Calls `callback(message)` for each arrival until the end of the run, either in the library's
  // thread or in this thread. Prints READY first. The callback may run until the participant ends.
  template <class Callback>
  void receive_all(Callback callback) {
    if (kit_.string("settings.receive") == "listener") {
      listener_ = std::make_unique<Listener<Callback>>(*this, callback);
      reader_->set_listener(listener_.get(), fastdds::StatusMask::data_available());
      ready();
      kit_.wait();
      reader_->set_listener(nullptr);
      return;
    }
    attach();
    ready();
    kit_.poll([&](int64_t timeout_ns) { wait_and_take(timeout_ns, callback); });
  }

  // Prepares wait_and_take.
  void attach() {
    auto& condition = reader_->get_statuscondition();
    condition.set_enabled_statuses(fastdds::StatusMask::data_available());
    wait_set_.attach_condition(condition);
  }

  template <class Callback>
  void wait_and_take(int64_t timeout_ns, Callback callback) {
    if (wait_set_.wait(active_, duration(timeout_ns)) == fastdds::RETCODE_OK) take(callback);
  }

  // Waits until the writer's messages are sent, because deleting it would discard them. Best effort
  // has no acknowledgements, so the node waits for a fixed time.
  void drain() {
    if (kit_.string("settings.reliability") == "reliable")
      writer_->wait_for_acknowledgments(duration(kit_.integer("linger_ms") * 1000000));
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(kit_.integer("quiet_ms")));
  }

 private:
  struct HistoryQos {
    bool reliable, keep_all;
    int64_t depth;
  };

  template <class Callback>
  class Listener : public fastdds::DataReaderListener {
   public:
    Listener(Participant& participant, Callback callback)
        : participant_(participant), callback_(std::move(callback)) {}
    void on_data_available(fastdds::DataReader*) override { participant_.take(callback_); }

   private:
    Participant& participant_;
    Callback callback_;
  };

  template <class Callback>
  void take(Callback& callback) {
    while (reader_->take_next_sample(&arrival_, &info_) == fastdds::RETCODE_OK)
      if (info_.valid_data) callback(arrival_);
  }

  fastdds::Topic* topic(const std::string& name) {
    const std::string full = "wattwire_" + kit_.string("run") + "_" + name;
    return created(
        participant_->create_topic(full, type_.get_type_name(), fastdds::TOPIC_QOS_DEFAULT),
        "topic " + name);
  }

  template <class Qos>
  void set_qos(Qos& qos) const {
    const bool reliable = kit_.string("settings.reliability") == "reliable";
    const bool all = kit_.string("settings.history") == "keep_all";
    qos.reliability().kind =
        reliable ? fastdds::RELIABLE_RELIABILITY_QOS : fastdds::BEST_EFFORT_RELIABILITY_QOS;
    qos.durability().kind = fastdds::VOLATILE_DURABILITY_QOS;
    qos.history().kind = all ? fastdds::KEEP_ALL_HISTORY_QOS : fastdds::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = static_cast<int32_t>(kit_.integer("settings.depth", 1, 400));
    qos.data_sharing().off();  // only types of bounded size could use it
  }

  template <class Qos>
  static HistoryQos history_qos(const Qos& qos) {
    return {qos.reliability().kind == fastdds::RELIABLE_RELIABILITY_QOS,
            qos.history().kind == fastdds::KEEP_ALL_HISTORY_QOS, qos.history().depth};
  }

  // Returns the number of matched peers. A relay has predecessors and one successor, and 0 peers
  // until the successor is matched; other nodes have the same peers on all their topics.
  int64_t matched() const {
    int64_t readers = INT32_MAX, writers = INT32_MAX;
    if (writer_ != nullptr) {
      fastdds::PublicationMatchedStatus status;
      writer_->get_publication_matched_status(status);
      readers = status.current_count;
    }
    if (reader_ != nullptr) {
      fastdds::SubscriptionMatchedStatus status;
      reader_->get_subscription_matched_status(status);
      writers = status.current_count;
    }
    if (kit_.string("role") == "relay") return readers > 0 ? 1 + writers : 0;
    return std::min(readers, writers);
  }

  wattwire::Kit& kit_;
  const uint32_t domain_;
  fastdds::DomainParticipant* participant_ = nullptr;
  fastdds::TypeSupport type_;
  fastdds::DataWriter* writer_ = nullptr;
  fastdds::DataReader* reader_ = nullptr;
  // Destroyed after the participant, because a last callback may still run in its thread.
  std::unique_ptr<fastdds::DataReaderListener> listener_;
  fastdds::WaitSet wait_set_;
  fastdds::ConditionSeq active_;
  Message arrival_;  // reused; only one thread takes
  fastdds::SampleInfo info_;
  int64_t created_ns_ = 0;
};
