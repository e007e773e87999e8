// Topic pattern: one DDS topic of the encoding's type.

#pragma once

#include "messages.hpp"
#include "participant.hpp"

inline void publish(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) {
    Participant participant(kit);
    const dds_entity_t writer = participant.writer("topic", type.message());
    participant.await_matched();
    participant.ready();
    kit.send_all([&](Bytes buffer) {
      typename decltype(type)::Message message;
      type.assign(message, buffer);
      return dds_write(writer, &message) == DDS_RETCODE_OK;
    });
    // Destroying the writer would discard its messages. Best effort has no acknowledgements, so the
    // node waits for a fixed time.
    if (kit.string("settings.reliability") == "reliable")
      dds_wait_for_acks(writer, DDS_MSECS(kit.integer("linger_ms")));
    else
      dds_sleepfor(DDS_MSECS(kit.integer("quiet_ms")));
  });
}

inline void subscribe(wattwire::Kit& kit) {
  with_type(kit, [&](auto type) {
    using Message = typename decltype(type)::Message;
    Participant participant(kit);
    participant.reader("topic", type.message());
    participant.await_matched();
    participant.ready();
    kit.poll([&](int64_t timeout_ns) {
      participant.take<Message>(timeout_ns,
                                [&](const Message& message) { kit.received(type.view(message)); });
    });
  });
}
