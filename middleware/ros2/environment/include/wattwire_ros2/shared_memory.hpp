// Shared memory of Fast DDS processes that were killed; it would stay for ever.

#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

// Locks that are free now and held until this goes.
class HeldLocks {
 public:
  HeldLocks() = default;
  ~HeldLocks() {
    for (int file : files_) close(file);
  }
  HeldLocks(const HeldLocks&) = delete;
  HeldLocks& operator=(const HeldLocks&) = delete;

  // False where somebody holds it, or it cannot be opened.
  bool take(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    files_.push_back(file);
    return flock(file, LOCK_EX | LOCK_NB) == 0;
  }

 private:
  std::vector<int> files_;
};

inline bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Removes segments whose locks are free, as `fastdds shm clean` does. A living process holds the
// lock beside its segment. What is fresh stays: its process may be about to lock it. Ports stay:
// an old one may be opened anew, and not locked yet, right now.
inline void remove_dead_memory(const std::filesystem::path& folder = "/dev/shm") {
  namespace fs = std::filesystem;
  // Fast DDS 2, which Humble and Jazzy have, names its files fastrtps_.
  const std::regex wanted(
      "(?:sem\\.)?(fast(?:dds|rtps)_(?:port[0-9]+|[0-9a-f]+))(?:_el|_sl|_mutex)?");
  std::error_code code;
  std::map<std::string, std::vector<fs::path>> groups;  // by name of the segment or port
  std::smatch match;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (std::regex_match(name, match, wanted)) groups[match[1]].push_back(entry.path());
  }
  const auto old = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  for (const auto& [name, files] : groups) {
    HeldLocks locks;
    bool dead = true;
    bool locked = false;  // a segment without a lock is being made
    if (name.find("_port") != std::string::npos) continue;
    for (const fs::path& file : files) {
      const auto written = fs::last_write_time(file, code);
      dead = dead && !code && written < old;
      if (!ends_with(file.string(), "_el") && !ends_with(file.string(), "_sl")) continue;
      locked = true;
      dead = dead && locks.take(file.string());
    }
    if (!dead || !locked) continue;
    for (const fs::path& file : files) fs::remove(file, code);
  }
}
