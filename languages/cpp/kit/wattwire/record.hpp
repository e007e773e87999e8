// The record of C-32, a nested message that each middleware carries in its own types.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace wattwire {

// Positions are x, y, z; orientations are x, y, z, w; times are in ns.
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

// A cell passes the address of this record for an arrival that it cannot decode.
inline const Record kUnreadableRecord = {};

}  // namespace wattwire
