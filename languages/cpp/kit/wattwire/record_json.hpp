// The record of C-32 as JSON, for cells whose wire carries text. kit.hpp does not include this
// file.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json_events.hpp"
#include "json_text.hpp"
#include "record.hpp"

namespace wattwire {

// Returns the record's JSON text with the names and the nesting of C-32.
inline std::string to_json(const Record& record) {
  auto number = [](double value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  auto axes = [&](const double* values, size_t count) {
    std::string out = "{";
    for (size_t at = 0; at < count; ++at)
      out += std::string(at == 0 ? "\"" : ",\"") + "xyzw"[at] + "\":" + number(values[at]);
    return out + "}";
  };
  std::string out = "{\"header\":{\"seq\":\"" + std::to_string(record.seq) + "\",\"send_ns\":\"" +
                    std::to_string(record.send_ns) + "\"},\"name\":" + quoted(record.name) +
                    ",\"pose\":{\"position\":" + axes(record.position.data(), 3) +
                    ",\"orientation\":" + axes(record.orientation.data(), 4) + "},\"samples\":[";
  for (const Record::Sample& sample : record.samples) {
    if (out.back() != '[') out += ',';
    out += "{\"id\":" + std::to_string(sample.id) + ",\"state\":" + std::to_string(sample.state) +
           ",\"value\":" + number(sample.value) + "}";
  }
  return out + "],\"trailer\":{\"seq\":\"" + std::to_string(record.trailer_seq) + "\"}}";
}

// Handles the events of nlohmann-json's parser. Rejects missing, duplicate and unknown fields.
class RecordReader {
 public:
  static std::optional<Record> read(std::string_view text) {
    RecordReader reader;
    if (!parse_json(text, &reader)) return std::nullopt;
    return std::move(reader.record_);
  }

  bool null() { return false; }
  bool boolean(bool) { return false; }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool number_integer(int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) {
    if (place_ != kId && place_ != kState) return number(static_cast<double>(value));
    Record::Sample& sample = record_.samples.back();
    (place_ == kId ? sample.id : sample.state) = static_cast<uint32_t>(value);
    return value <= UINT32_MAX;
  }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(const std::string& value) {
    if (place_ == kName) record_.name = value;
    return place_ == kName || (place_ == kHeaderSeq && digits(value, &record_.seq)) ||
           (place_ == kSendNs && digits(value, &record_.send_ns)) ||
           (place_ == kTrailerSeq && digits(value, &record_.trailer_seq));
  }

  bool key(const std::string& name) {
    for (const Field& field : kFields) {
      if (field.object != object_ || name != field.name) continue;
      if ((seen_ >> field.place & 1) != 0) return false;
      seen_ |= 1u << field.place;
      place_ = field.place;
      return true;
    }
    return false;
  }
  bool start_object(size_t) {
    if (place_ > kLastObject) return false;
    if (place_ == kSample) {
      seen_ &= ~(1u << kId | 1u << kState | 1u << kValue);
      record_.samples.emplace_back();
    }
    outer_[depth_++] = object_;
    object_ = place_;
    return true;
  }
  bool end_object() {
    for (const Field& field : kFields)
      if (field.object == object_ && (seen_ >> field.place & 1) == 0) return false;
    place_ = object_ == kSample ? kSample : kNothing;  // the next sample may follow
    object_ = outer_[--depth_];
    return true;
  }
  bool start_array(size_t) {
    if (place_ != kSamples) return false;
    place_ = kSample;
    return true;
  }
  bool end_array() { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  // Objects come first, so that a single comparison identifies them.
  enum Place : uint8_t {
    kRecord,
    kHeader,
    kPose,
    kPosition,
    kOrientation,
    kTrailer,
    kSample,
    kLastObject = kSample,
    kName,
    kSamples,
    kHeaderSeq,
    kSendNs,
    kTrailerSeq,
    kId,
    kState,
    kValue,
    kPositionX,
    kPositionY,
    kPositionZ,
    kOrientationX,
    kOrientationY,
    kOrientationZ,
    kOrientationW,
    kNothing
  };
  struct Field {
    Place object;
    const char* name;
    Place place;
  };
  static constexpr Field kFields[] = {
      {kRecord, "header", kHeader},
      {kRecord, "name", kName},
      {kRecord, "pose", kPose},
      {kRecord, "samples", kSamples},
      {kRecord, "trailer", kTrailer},
      {kHeader, "seq", kHeaderSeq},
      {kHeader, "send_ns", kSendNs},
      {kPose, "position", kPosition},
      {kPose, "orientation", kOrientation},
      {kPosition, "x", kPositionX},
      {kPosition, "y", kPositionY},
      {kPosition, "z", kPositionZ},
      {kOrientation, "x", kOrientationX},
      {kOrientation, "y", kOrientationY},
      {kOrientation, "z", kOrientationZ},
      {kOrientation, "w", kOrientationW},
      {kTrailer, "seq", kTrailerSeq},
      {kSample, "id", kId},
      {kSample, "state", kState},
      {kSample, "value", kValue},
  };

  bool number(double value) {
    if (place_ == kValue) record_.samples.back().value = value;
    const int position = place_ - kPositionX, orientation = place_ - kOrientationX;
    const bool in_position = position >= 0 && position < 3;
    const bool in_orientation = orientation >= 0 && orientation < 4;
    if (in_position) record_.position[static_cast<size_t>(position)] = value;
    if (in_orientation) record_.orientation[static_cast<size_t>(orientation)] = value;
    return place_ == kValue || in_position || in_orientation;
  }

  // Parses a string of decimal digits (C-32).
  template <class Number>
  static bool digits(const std::string& text, Number* out) {
    const char* end = text.data() + text.size();
    auto [after, error] = std::from_chars(text.data(), end, *out);
    return error == std::errc() && after == end && text[0] != '-';
  }

  Record record_;
  std::array<Place, 4> outer_ = {};
  size_t depth_ = 0;
  Place object_ = kNothing, place_ = kRecord;  // the current object and the next value
  uint32_t seen_ = 0;
};

inline std::optional<Record> record_from_json(std::string_view text) {
  return RecordReader::read(text);
}

}  // namespace wattwire
