// Topic and pipeline patterns: a DDS topic of the encoding's type, or one per channel.

#pragma once

#include "messages.hpp"
#include "participant.hpp"

// Waits until the writer's messages are sent, because destroying it would discard them. Best effort
// has no acknowledgements, so the node waits for a fixed time.
inline void drain(const wattwire::Kit& kit, dds_entity_t writer) {
  if (kit.string("settings.reliability") == "reliable")
    dds_wait_for_acks(writer, DDS_MSECS(kit.integer("linger_ms")));
  else
    dds_sleepfor(DDS_MSECS(kit.integer("quiet_ms")));
}

inline void publish(wattwire::Kit& kit) {
  with_topic_type(kit, [&](auto type) {
    Participant participant(kit);
    const dds_entity_t writer = participant.writer(kit.sending_topic(), type.message());
    participant.await_matched();
    participant.ready();
    kit.send_all([&](Bytes buffer) {
      typename decltype(type)::Message message;
      type.assign(message, buffer);
      return dds_write(writer, &message) == DDS_RETCODE_OK;
    });
    drain(kit, writer);
  });
}

inline void subscribe(wattwire::Kit& kit) {
  with_topic_type(kit, [&](auto type) {
    using Message = typename decltype(type)::Message;
    Participant participant(kit);
    participant.reader(kit.receiving_topic(), type.message());
    participant.await_matched();
    participant.ready();
    kit.poll([&](int64_t timeout_ns) {
      participant.take<Message>(timeout_ns,
                                [&](const Message& message) { kit.received(type.view(message)); });
    });
  });
}

// Sends the messages that the reader lends, so it does not fill them again.
inline void relay(wattwire::Kit& kit) {
  with_topic_type(kit, [&](auto type) {
    using Message = typename decltype(type)::Message;
    Participant participant(kit);
    const dds_entity_t writer = participant.writer(kit.sending_topic(), type.message());
    participant.reader(kit.receiving_topic(), type.message());
    participant.await_matched();
    participant.ready();
    kit.poll([&](int64_t timeout_ns) {
      participant.take<Message>(timeout_ns, [&](const Message& arrived) {
        const auto message = kit.relay(type.view(arrived));
        if (!message) return;
        const bool sent = dds_write(writer, &arrived) == DDS_RETCODE_OK;
        sent ? kit.relayed(*message) : kit.relay_failed(*message);
      });
    });
    drain(kit, writer);
  });
}
