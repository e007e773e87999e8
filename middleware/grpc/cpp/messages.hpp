// Converts between the proto's messages and the kit's payloads.
#pragma once

#include <optional>

#include "wattwire.grpc.pb.h"
#include "wattwire/kit.hpp"

inline void fill(wattwire::BytesPayload* out, wattwire::Bytes payload) {
  out->set_data(payload.data, payload.size);
}

inline void fill(wattwire::TextPayload* out, wattwire::Bytes payload) {
  out->set_data(reinterpret_cast<const char*>(payload.data), payload.size);
}

inline void fill(wattwire::RecordPayload* out, wattwire::Bytes payload) {
  const wattwire::Record& record = *payload.record;
  out->mutable_header()->set_seq(record.seq);
  out->mutable_header()->set_send_ns(record.send_ns);
  out->set_name(record.name);
  auto* position = out->mutable_pose()->mutable_position();
  position->set_x(record.position[0]);
  position->set_y(record.position[1]);
  position->set_z(record.position[2]);
  auto* orientation = out->mutable_pose()->mutable_orientation();
  orientation->set_x(record.orientation[0]);
  orientation->set_y(record.orientation[1]);
  orientation->set_z(record.orientation[2]);
  orientation->set_w(record.orientation[3]);
  out->mutable_samples()->Reserve(static_cast<int>(record.samples.size()));
  out->clear_samples();
  for (const auto& sample : record.samples) {
    auto* added = out->add_samples();
    added->set_id(sample.id);
    added->set_state(sample.state);
    added->set_value(sample.value);
  }
  out->mutable_trailer()->set_seq(record.trailer_seq);
}

// Both return views of the message or of `record`, to which they copy a record's fields.
template <class Payload>
wattwire::Bytes read(const Payload& in, wattwire::Record*) {
  return in.data();
}

inline wattwire::Bytes read(const wattwire::RecordPayload& in, wattwire::Record* record) {
  record->seq = in.header().seq();
  record->send_ns = in.header().send_ns();
  record->name = in.name();
  const auto& position = in.pose().position();
  record->position = {position.x(), position.y(), position.z()};
  const auto& orientation = in.pose().orientation();
  record->orientation = {orientation.x(), orientation.y(), orientation.z(), orientation.w()};
  record->samples.clear();
  for (const auto& sample : in.samples())
    record->samples.push_back({sample.id(), sample.state(), sample.value()});
  record->trailer_seq = in.trailer().seq();
  return *record;
}
