// Topic and pipeline patterns: a DDS topic, or one per channel.

#pragma once

#include "participant.hpp"

inline void publish(wattwire::Kit& kit) {
  Participant participant(kit, Frame::kMessage);
  participant.open_writer(kit.sending_topic());
  participant.ready();
  Message message;
  kit.send_all([&](Bytes buffer) {
    message.body = buffer;
    return participant.send(message);
  });
  participant.drain();
}

inline void subscribe(wattwire::Kit& kit) {
  Participant participant(kit, Frame::kMessage);
  participant.open_reader(kit.receiving_topic());
  participant.receive_all([&](const Message& message) { kit.received(message.body); });
}

// Sends the arrival from its own memory, without a copy.
inline void relay(wattwire::Kit& kit) {
  Participant participant(kit, Frame::kMessage);
  participant.open_writer(kit.sending_topic());
  participant.open_reader(kit.receiving_topic());
  participant.receive_all([&](const Message& arrival) {
    const auto message = kit.relay(arrival.body);
    if (!message) return;
    participant.send(arrival) ? kit.relayed(*message) : kit.relay_failed(*message);
  });
  participant.drain();
}
