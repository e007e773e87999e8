// The contract's keys, roles, kinds, flags and layouts; written by tools/generate_constants.py.
#pragma once

#include <cstdint>

// Each entry has a line of its own.
// clang-format off

namespace wattwire {

constexpr int64_t kContract = 2;

// What a key of a spec holds; the harness checks which values it may have (C-02).
enum class Type { kString, kBoolean, kInteger, kStrings, kIntegers };

struct KeyType {
  const char* name;
  Type type;
};
inline constexpr KeyType kKeys[] = {
    {"contract", Type::kInteger},
    {"run", Type::kString},
    {"cell", Type::kString},
    {"pattern", Type::kString},
    {"role", Type::kString},
    {"node", Type::kInteger},
    {"index", Type::kInteger},
    {"peers.nodes", Type::kIntegers},
    {"peers.count", Type::kInteger},
    {"peers.endpoints", Type::kStrings},
    {"loop", Type::kString},
    {"period_ns", Type::kInteger},
    {"phase_ns", Type::kInteger},
    {"duration_ns", Type::kInteger},
    {"count", Type::kInteger},
    {"count_beyond", Type::kInteger},
    {"warmup_ns", Type::kInteger},
    {"overrun_ns", Type::kInteger},
    {"timeout_ns", Type::kInteger},
    {"outstanding_max", Type::kInteger},
    {"quiet_ms", Type::kInteger},
    {"linger_ms", Type::kInteger},
    {"ready_timeout_ms", Type::kInteger},
    {"pacing", Type::kString},
    {"spin_ns", Type::kInteger},
    {"payload.bytes", Type::kInteger},
    {"payload.encoding", Type::kString},
    {"payload.seed", Type::kInteger},
    {"payload.literal", Type::kString},
    {"reply", Type::kString},
    {"reply.literal", Type::kString},
    {"verify", Type::kString},
    {"action.feedback", Type::kInteger},
    {"record.capacity", Type::kInteger},
    {"tls.authority", Type::kString},
    {"tls.certificate", Type::kString},
    {"tls.key", Type::kString},
};

struct Role {
  const char* name;
  const char* pattern;
  uint8_t code;
  bool sends;
};
inline constexpr Role kRoles[] = {
    {"publisher", "topic", 0, true},
    {"subscriber", "topic", 1, false},
    {"server", "service", 2, false},
    {"client", "service", 3, true},
    {"action_server", "action", 4, false},
    {"action_client", "action", 5, true},
    {"ping", "pingpong", 6, true},
    {"pong", "pingpong", 7, false},
};

enum Kind : uint8_t {
  kMessage = 0,
  kCall = 1,
  kGoal = 2,
  kAccept = 3,
  kFeedback = 4,
  kResult = 5,
  kRelay = 6,
};
enum Flag : uint8_t {
  kWarmUp = 1,
  kFailed = 2,
  kTimeout = 4,
  kCorrupt = 8,
};

constexpr int64_t kUnknownNs = INT64_MIN;
constexpr uint16_t kUnknownPeer = 65535;
constexpr uint64_t kProbe = 281474976710655;
constexpr uint64_t kCounterMask = 281474976710655;

// The words of a guarantee (C-07).
inline constexpr const char* kDeliveryWords[] = {
    "best_effort",
    "at_most_once",
    "at_least_once",
    "exactly_once",
    "reliable",
};
inline constexpr const char* kOrderingWords[] = {
    "none",
    "per_sender",
    "total",
};
inline constexpr const char* kOverloadWords[] = {
    "drop_newest",
    "drop_oldest",
    "block",
    "unbounded",
};

// The sample file (C-24, C-25).
inline constexpr char kFileMagic[] = "WATTWIRE";
constexpr uint16_t kFileVersion = 1;
constexpr uint8_t kFileClock = 1;

struct FileHeader {
  char magic[8];
  uint16_t version;
  uint16_t header_bytes;
  uint16_t record_bytes;
  uint8_t role;
  uint8_t clock;
  uint16_t node;
  uint16_t zero16;
  uint32_t zero32;
  uint64_t count;
  uint64_t overflow;
  uint64_t seed;
  char reserved[16];
};
static_assert(sizeof(FileHeader) == 64, "no padding: the fields take as much");

struct Entry {
  uint64_t seq;
  int64_t intended_ns;
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t bytes;
  uint16_t peer;
  uint8_t kind;
  uint8_t flags;
};
static_assert(sizeof(Entry) == 40, "no padding: the fields take as much");

}  // namespace wattwire
