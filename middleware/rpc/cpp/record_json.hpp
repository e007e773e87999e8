// Converts the record of C-32 to and from values of nlohmann-json.
#pragma once

#include <charconv>
#include <nlohmann/json.hpp>

#include "wattwire/kit.hpp"

using Json = nlohmann::json;

inline Json json_of(const wattwire::Record& record) {
  const auto& position = record.position;
  const auto& orientation = record.orientation;
  Json samples = Json::array();
  for (const auto& sample : record.samples)
    samples.push_back({{"id", sample.id}, {"state", sample.state}, {"value", sample.value}});
  return {{"header",
           {{"seq", std::to_string(record.seq)}, {"send_ns", std::to_string(record.send_ns)}}},
          {"name", record.name},
          {"pose",
           {{"position", {{"x", position[0]}, {"y", position[1]}, {"z", position[2]}}},
            {"orientation",
             {{"x", orientation[0]},
              {"y", orientation[1]},
              {"z", orientation[2]},
              {"w", orientation[3]}}}}},
          {"samples", std::move(samples)},
          {"trailer", {{"seq", std::to_string(record.trailer_seq)}}}};
}

// Parses a string of decimal digits, because the numbers of some languages have less than 64 bits.
template <class Number>
Number digits(const Json& value) {
  const auto& text = value.get_ref<const std::string&>();
  const char* end = text.data() + text.size();
  Number number = 0;
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || after != end || text[0] == '-')
    throw std::invalid_argument("found " + value.dump() + "; allowed: a string of digits");
  return number;
}

inline uint32_t small(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX)
    throw std::invalid_argument("found " + value.dump() + "; allowed: 0 to 2^32 - 1");
  return value.get<uint32_t>();
}

// Returns nullopt if a field is missing or has the wrong type.
inline std::optional<wattwire::Record> record_of(const Json& value) try {
  wattwire::Record record;
  record.seq = digits<uint64_t>(value.at("header").at("seq"));
  record.send_ns = digits<int64_t>(value.at("header").at("send_ns"));
  record.name = value.at("name").get<std::string>();
  const Json& position = value.at("pose").at("position");
  record.position = {position.at("x"), position.at("y"), position.at("z")};
  const Json& orientation = value.at("pose").at("orientation");
  record.orientation = {orientation.at("x"), orientation.at("y"), orientation.at("z"),
                        orientation.at("w")};
  for (const Json& sample : value.at("samples").get_ref<const Json::array_t&>())
    record.samples.push_back(
        {small(sample.at("id")), small(sample.at("state")), sample.at("value").get<double>()});
  record.trailer_seq = digits<uint64_t>(value.at("trailer").at("seq"));
  return record;
} catch (const Json::exception&) {
  return std::nullopt;
} catch (const std::invalid_argument&) {
  return std::nullopt;
}
