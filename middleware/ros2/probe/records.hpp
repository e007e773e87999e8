// Records of received messages in files that are mapped and preallocated, so that a record costs no
// system call, and a killed probe leaves what it has written.

#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

// The layout is documented in docs/manifests.md. All times are in ns.
struct Record {
  int64_t source_ns;     // the publisher's CLOCK_REALTIME when it published; 0: not given
  int64_t received_ns;   // CLOCK_REALTIME when the middleware received it; 0: not given
  int64_t taken_ns;      // CLOCK_REALTIME after the take
  int64_t monotonic_ns;  // CLOCK_MONOTONIC after the take; 0: no record yet
  int64_t stamp_ns;      // the stamp in the header of the message, or kNoStamp
  uint64_t sequence;     // number of the publication, or kNoSequence
  uint32_t bytes;        // serialized size
  uint32_t stream;       // index of topic and publisher in the facts
};
static_assert(sizeof(Record) == 56, "wattwire reads this layout");

inline constexpr int64_t kNoStamp = std::numeric_limits<int64_t>::min();
inline constexpr uint64_t kNoSequence = std::numeric_limits<uint64_t>::max();

class RecordFiles {
 public:
  explicit RecordFiles(std::string folder) : folder_(std::move(folder)) { open_next(); }
  ~RecordFiles() {
    close_current();
    ignore_failure(truncate(path_.c_str(), static_cast<off_t>(used_ * sizeof(Record))));
  }
  RecordFiles(const RecordFiles&) = delete;
  RecordFiles& operator=(const RecordFiles&) = delete;

  // Appends a record. A reader of the file sees it when its monotonic_ns is no longer 0.
  void append(const Record& record) {
    if (used_ == kRecordsPerFile) {
      close_current();
      open_next();
    }
    Record& place = records_[used_++];
    Record unseen = record;
    unseen.monotonic_ns = 0;
    place = unseen;
    __atomic_store_n(&place.monotonic_ns, record.monotonic_ns, __ATOMIC_RELEASE);
    ++count_;
  }

  uint64_t count() const { return count_; }

 private:
  static constexpr size_t kRecordsPerFile = 1 << 17;
  static constexpr size_t kBytesPerFile = kRecordsPerFile * sizeof(Record);

  void open_next() {
    char name[32];
    std::snprintf(name, sizeof name, "/records-%06u.bin", number_++);
    path_ = folder_ + name;
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    // Without the allocation, a full disk would kill the probe with SIGBUS at a record.
    const int failure = file < 0 ? errno : posix_fallocate(file, 0, kBytesPerFile);
    void* memory = failure != 0 ? MAP_FAILED
                                : mmap(nullptr, kBytesPerFile, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error(path_ + ": " + std::strerror(failure != 0 ? failure : errno));
    }
    close(file);
    records_ = static_cast<Record*>(memory);
    used_ = 0;
  }

  void close_current() {
    if (records_ != nullptr) munmap(records_, kBytesPerFile);
    records_ = nullptr;
  }

  static void ignore_failure(int /*code*/) {}  // a longer file is read as well

  const std::string folder_;
  std::string path_;
  Record* records_ = nullptr;
  size_t used_ = 0;
  uint64_t count_ = 0;
  unsigned number_ = 0;
};
