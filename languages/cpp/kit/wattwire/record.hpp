// The record of C-32: one nested message, as each middleware carries it in types of its own.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace wattwire {

// Positions are x, y, z; orientations x, y, z, w; times in ns.
struct Record {
  struct Sample {
    uint32_t id = 0, state = 0;
    double value = 0;
    bool operator==(const Sample& other) const {
      return id == other.id && state == other.state && value == other.value;
    }
  };
  uint64_t seq = 0;
  int64_t send_ns = 0;
  std::string name;
  std::array<double, 3> position = {};
  std::array<double, 4> orientation = {};
  std::vector<Sample> samples;
  uint64_t trailer_seq = 0;

  static constexpr size_t kFixedBytes = 96, kSampleBytes = 16;
  size_t nominal_bytes() const { return kFixedBytes + kSampleBytes * samples.size(); }
  bool same_body(const Record& other) const {
    return name == other.name && position == other.position && orientation == other.orientation &&
           samples == other.samples;
  }
};

// What a cell hands to the kit for an arrival that its decoder refused is the address of this.
inline const Record kUnreadableRecord = {};

// The record's JSON text, by the names and the nesting of C-32's table.
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

// Reads a record's JSON text; every field must be there once, and nothing else.
class RecordReader {
 public:
  explicit RecordReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  std::optional<Record> read() {
    Record out;
    fields(5, [&](std::string_view name) {
      if (name == "header")
        return fields(2, [&](std::string_view key) {
          return key == "seq" ? digits(&out.seq) : key == "send_ns" && digits(&out.send_ns);
        });
      if (name == "name") return text(&out.name);
      if (name == "pose")
        return fields(2, [&](std::string_view key) {
          return key == "position"      ? axes(out.position.data(), 3)
                 : key == "orientation" ? axes(out.orientation.data(), 4)
                                        : false;
        });
      if (name == "samples") return samples(&out.samples);
      return name == "trailer" && fields(1, [&](std::string_view key) {
               return key == "seq" && digits(&out.trailer_seq);
             });
    });
    space();
    if (!good_ || at_ != end_) return std::nullopt;
    return out;
  }

 private:
  void space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool wrong() { return good_ = false; }

  // An object of `count` different fields; `field(name)` reads the value and says whether it could.
  template <class Field>
  bool fields(size_t count, Field field) {
    std::array<std::string, 5> seen;
    size_t found = 0;
    if (!take('{')) return wrong();
    do {
      std::string name;
      if (found == count || !text(&name) || !take(':')) return wrong();
      for (size_t at = 0; at < found; ++at)
        if (seen[at] == name) return wrong();
      space();
      if (!field(name)) return wrong();
      seen[found++] = std::move(name);
    } while (take(','));
    return (take('}') && found == count) || wrong();
  }

  bool axes(double* values, size_t count) {
    return fields(count, [&](std::string_view name) {
      size_t which = name.size() == 1 ? std::string_view("xyzw", count).find(name[0]) : count;
      return which < count && number(&values[which]);
    });
  }

  bool samples(std::vector<Record::Sample>* out) {
    if (!take('[')) return wrong();
    if (take(']')) return true;
    do {
      space();
      Record::Sample sample;
      bool read = fields(3, [&](std::string_view name) {
        return name == "id"      ? number(&sample.id)
               : name == "state" ? number(&sample.state)
                                 : name == "value" && number(&sample.value);
      });
      if (!read) return false;
      out->push_back(sample);
    } while (take(','));
    return take(']') || wrong();
  }

  template <class Number>
  bool number(Number* out) {
    // from_chars also reads "inf" and "nan", which are no JSON.
    if (at_ == end_ || (*at_ != '-' && (*at_ < '0' || *at_ > '9'))) return wrong();
    if (end_ - at_ > 1 && *at_ == '-' && (at_[1] < '0' || at_[1] > '9')) return wrong();
    auto [after, error] = std::from_chars(at_, end_, *out);
    if (error != std::errc()) return wrong();
    at_ = after;
    return at_ == end_ || std::string_view(",}] \t\r\n").find(*at_) != std::string_view::npos ||
           wrong();
  }

  // A string of decimal digits (C-32).
  template <class Number>
  bool digits(Number* out) {
    std::string found;
    if (!text(&found)) return false;
    const char* end = found.data() + found.size();
    auto [after, error] = std::from_chars(found.data(), end, *out);
    return (error == std::errc() && after == end && found[0] != '-') || wrong();
  }

  bool text(std::string* out) {
    space();
    const char* begin = at_;
    if (at_ == end_ || *at_ != '"') return wrong();
    for (++at_; at_ != end_ && *at_ != '"'; ++at_)
      if (*at_ == '\\' && ++at_ == end_) return wrong();
    if (at_ == end_) return wrong();
    ++at_;
    try {
      *out = FlatJson(std::string(begin, at_)).text();
    } catch (const std::invalid_argument&) {
      return wrong();
    }
    return true;
  }

  const char *at_, *end_;
  bool good_ = true;
};

inline std::optional<Record> record_from_json(std::string_view text) {
  return RecordReader(text).read();
}

}  // namespace wattwire
