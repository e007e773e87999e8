// Keeps records in memory during the window and writes the sample file after it (C-24 to C-26).
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "constants.hpp"

namespace wattwire {

// Any thread may call `add`. The constructor touches the memory, so that the window has no page
// faults.
class Recorder {
 public:
  explicit Recorder(size_t capacity) : records_(capacity) {}

  void add(const Entry& record) {
    uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index < records_.size()) records_[index] = record;
  }
  uint64_t recorded() const { return std::min<uint64_t>(next_, records_.size()); }
  uint64_t overflow() const { return next_ - recorded(); }

  void write(const std::string& path, uint8_t role, uint16_t node, uint64_t seed) const {
    FileHeader header = {};
    std::memcpy(header.magic, kFileMagic, sizeof header.magic);
    header.version = kFileVersion;
    header.clock = kFileClock;
    header.header_bytes = sizeof header;
    header.record_bytes = sizeof(Entry);
    header.role = role;
    header.node = node;
    header.count = recorded();
    header.overflow = overflow();
    header.seed = seed;
    std::FILE* file = std::fopen(path.c_str(), "wb");
    bool good = file != nullptr && std::fwrite(&header, sizeof header, 1, file) == 1;
    if (good && recorded() > 0)  // data() of an empty vector may be null
      good = std::fwrite(records_.data(), sizeof(Entry), recorded(), file) == recorded();
    if (file != nullptr) good = std::fclose(file) == 0 && good;
    if (!good) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
  }

 private:
  std::vector<Entry> records_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace wattwire
