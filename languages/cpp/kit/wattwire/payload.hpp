// Creates payloads and checks arrivals for foreign and corrupt payloads (C-17 to C-22).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "constants.hpp"
#include "record.hpp"
#include "spec.hpp"

namespace wattwire {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records and headers are little-endian");

// A non-owning view of a payload: bytes, or a record and its nominal size.
struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
  const Record* record = nullptr;
  Bytes() = default;
  Bytes(const Record& message) : size(message.nominal_bytes()), record(&message) {}
  // An arrival that the cell cannot decode.
  static Bytes unreadable() { return Bytes(kUnreadableRecord); }
  bool is_unreadable() const { return record == &kUnreadableRecord; }
  Bytes(const void* begin, size_t count) : data(static_cast<const uint8_t*>(begin)), size(count) {}
  Bytes(const std::string& text) : Bytes(text.data(), text.size()) {}
  std::string str() const { return std::string(view()); }
  std::string_view view() const { return {reinterpret_cast<const char*>(data), size}; }
  Bytes part(size_t from, size_t count) const {
    from = std::min(from, size);
    return {data + from, std::min(count, size - from)};
  }
  bool operator==(const Bytes& other) const {
    return size == other.size && (size == 0 || std::memcmp(data, other.data, size) == 0);
  }
};

inline constexpr char kAlphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Returns the first `count` bytes of the fill of C-19 (splitmix64, little-endian words).
inline std::vector<uint8_t> fill_stream(uint64_t seed, size_t count) {
  std::vector<uint8_t> out((count + 7) / 8 * 8);
  uint64_t state = seed;
  for (size_t at = 0; at < out.size(); at += 8) {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    std::memcpy(&out[at], &z, 8);
  }
  out.resize(count);
  return out;
}

// Writes each byte as two lower-case hexadecimal digits.
inline void write_hex(const uint8_t* bytes, size_t count, uint8_t* out) {
  static const char kDigits[] = "0123456789abcdef";
  for (size_t at = 0; at < count; ++at) {
    out[2 * at] = static_cast<uint8_t>(kDigits[bytes[at] >> 4]);
    out[2 * at + 1] = static_cast<uint8_t>(kDigits[bytes[at] & 15]);
  }
}

// A sequence as encoded at the beginning of a payload: 8 bytes or 16 characters. The name `Header`
// belongs to a message that protoc generates in this namespace.
struct EncodedSequence {
  uint8_t data[16];
  size_t size;
  Bytes bytes() const { return {data, size}; }
};

enum class Verdict { kOk, kCorrupt, kForeign };

struct Checked {
  Verdict verdict = Verdict::kOk;
  std::optional<uint64_t> seq;
  int64_t begin_ns = kUnknownNs;
};

// The payload of a run, with the sender's buffer and the receiver's checks.
class Payload {
 public:
  struct Shape {
    size_t bytes;
    bool text;
    uint64_t seed;
    std::string literal;
    bool full;
    bool record = false;
  };

  Payload(const Shape& shape, const std::vector<int64_t>& nodes)
      : literal(shape.literal),
        length(shape.record      ? record_of(shape.seed, shape.bytes).nominal_bytes()
               : literal.empty() ? shape.bytes
                                 : literal.size()),
        unit_(shape.text ? 2 : 1),
        carries_seq(literal.empty() && length >= 8 * unit_),
        full_(shape.full),
        fill_at_(16 * unit_),
        trailer_(length >= 24 * unit_ ? 8 * unit_ : 0),
        nodes_(nodes),
        buffer_(shape.record ? size_t{1} : std::max(length, size_t{1})) {
    if (shape.record) {
      record_ = record_of(shape.seed, shape.bytes);
      return;
    }
    if (!literal.empty()) {
      std::memcpy(buffer_.data(), literal.data(), length);
      return;
    }
    if (length <= fill_at_ + trailer_) return;
    fill_ = fill_stream(shape.seed, length - fill_at_ - trailer_);
    if (shape.text)
      for (auto& value : fill_) value = static_cast<uint8_t>(kAlphabet[value % 64]);
    std::memcpy(&buffer_[fill_at_], fill_.data(), fill_.size());
    plain_ = unit_ == 1 && fill_.size() >= 8;
  }

  // Writes sequence and send time into the buffer, whose fill stays unchanged.
  Bytes stamp(uint64_t seq, int64_t begin_ns) {
    if (plain_) {
      std::memcpy(&buffer_[0], &seq, 8);
      std::memcpy(&buffer_[8], &begin_ns, 8);
      std::memcpy(&buffer_[length - 8], &seq, 8);
      return {buffer_.data(), length};
    }
    if (record_) {
      record_->seq = record_->trailer_seq = seq;
      record_->send_ns = begin_ns;
      return *record_;
    }
    if (literal.empty()) {
      uint8_t plain[16], header[32];
      std::memcpy(plain, &seq, 8);
      std::memcpy(plain + 8, &begin_ns, 8);
      std::memcpy(header, plain, 16);
      if (unit_ == 2) write_hex(plain, 16, header);
      std::memcpy(buffer_.data(), header, std::min(length, fill_at_));
      if (trailer_ != 0) std::memcpy(&buffer_[length - trailer_], header, trailer_);
    }
    return {buffer_.data(), length};
  }

  // Returns the sequence as encoded at the beginning of a payload of sufficient length.
  EncodedSequence header(uint64_t seq) const {
    uint8_t plain[8];
    std::memcpy(plain, &seq, 8);
    EncodedSequence out = {{}, 8 * unit_};
    std::memcpy(out.data, plain, 8);
    if (unit_ == 2) write_hex(plain, 8, out.data);
    return out;
  }

  // Returns the verdict of C-21 on an arrival.
  Checked check(const Bytes& data) {
    Checked result;
    if (plain_ && data.record == nullptr && data.size == length && read_plain(data, &result))
      return result;
    if (record_) return check_record(data);
    if (!literal.empty()) {
      result.verdict = data == Bytes(literal) ? Verdict::kOk : Verdict::kCorrupt;
      result.seq = complete(0, 0);
      return result;
    }
    read_header(data, &result);
    if (!result.seq) {
      result.verdict = Verdict::kCorrupt;
      return result;
    }
    Bytes first(fill_.data(), std::min(fill_.size(), size_t{8}));
    Bytes arrived = data.part(fill_at_, first.size);
    if (!knows(*result.seq) || !(arrived == first.part(0, arrived.size))) {
      result.verdict = Verdict::kForeign;
      return result;
    }
    bool good = data.size == length;
    if (good && trailer_ != 0)
      good = data.part(length - trailer_, trailer_) == data.part(0, trailer_);
    if (good && full_)
      good = data.part(fill_at_, fill_.size()) == Bytes(fill_.data(), fill_.size());
    result.verdict = good ? Verdict::kOk : Verdict::kCorrupt;
    return result;
  }

  const std::string literal;
  const size_t length;

 private:
  const size_t unit_;

 public:
  const bool carries_seq;

 private:
  // Returns the record of C-32 with at most `bytes` nominal bytes.
  static Record record_of(uint64_t seed, size_t bytes) {
    constexpr size_t kFirstSampleWord = 9;
    const size_t count = (bytes - Record::kFixedBytes) / Record::kSampleBytes;
    const std::vector<uint8_t> stream = fill_stream(seed, 8 * (kFirstSampleWord + count));
    auto word = [&](size_t at) {
      uint64_t out;
      std::memcpy(&out, &stream[8 * at], 8);
      return out;
    };
    auto value = [&](size_t at) { return static_cast<int32_t>(word(at) >> 32) / 1024.0; };
    Record out;
    for (size_t at = 0; at < 16; ++at) out.name += kAlphabet[stream[at] % 64];
    for (size_t at = 0; at < 3; ++at) out.position[at] = value(2 + at);
    for (size_t at = 0; at < 4; ++at) out.orientation[at] = value(5 + at);
    for (size_t at = 0; at < count; ++at)
      out.samples.push_back({static_cast<uint32_t>(at),
                             static_cast<uint32_t>(word(kFirstSampleWord + at) % 256),
                             value(kFirstSampleWord + at)});
    return out;
  }

  Checked check_record(const Bytes& data) const {
    Checked result;
    if (data.record == nullptr || data.is_unreadable()) {
      result.verdict = Verdict::kCorrupt;
      return result;
    }
    const Record& arrival = *data.record;
    result.seq = arrival.seq;
    result.begin_ns = arrival.send_ns;
    if (!knows(arrival.seq) || arrival.name != record_->name) {
      result.verdict = Verdict::kForeign;
      return result;
    }
    bool good =
        arrival.samples.size() == record_->samples.size() && arrival.trailer_seq == arrival.seq;
    if (good && full_) good = arrival.same_body(*record_);
    result.verdict = good ? Verdict::kOk : Verdict::kCorrupt;
    return result;
  }

  // Reads a complete payload of these nodes. Returns false if its trailer or fill is wrong.
  bool read_plain(const Bytes& data, Checked* result) const {
    const uint64_t seq = word_at(data.data);
    if (word_at(data.data + length - 8) != seq ||
        word_at(data.data + fill_at_) != word_at(fill_.data()) || !knows(seq))
      return false;
    if (full_ && std::memcmp(data.data + fill_at_, fill_.data(), fill_.size()) != 0) return false;
    result->seq = seq;
    std::memcpy(&result->begin_ns, data.data + 8, 8);
    return true;
  }

  static uint64_t word_at(const uint8_t* data) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    return word;
  }

  // Returns whether a known node sends this sequence.
  bool knows(uint64_t seq) const {
    const auto node = static_cast<int64_t>(seq >> 48);
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  }

  void read_header(const Bytes& data, Checked* result) {
    uint8_t head[16];
    Bytes place = data.part(0, std::min(length, fill_at_));
    size_t count = place.size / unit_;
    for (size_t at = 0; at < count; ++at) {
      int high = 0, low = unit_ == 1 ? place.data[at] : digit(place.data[2 * at + 1]);
      if (unit_ == 2) high = digit(place.data[2 * at]);
      if (high < 0 || low < 0) return;
      head[at] = static_cast<uint8_t>(high << 4 | low);
    }
    uint64_t seq = 0;
    std::memcpy(&seq, head, std::min(count, size_t{8}));
    if (count >= 8) result->seq = seq;
    if (count == 16) std::memcpy(&result->begin_ns, head + 8, 8);
    if (!carries_seq) result->seq = complete(seq & kCounterMask, std::min(count, size_t{6}));
  }

  static int digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  // Returns the sequence with these low bytes that is nearest to the next expected sequence.
  uint64_t complete(uint64_t low, size_t known_bytes) {
    auto node = static_cast<uint64_t>(nodes_.size() == 1 ? nodes_[0] : kUnknownPeer);
    auto modulus = int64_t{1} << (8 * known_bytes);
    auto expected = static_cast<int64_t>(expected_);
    int64_t counter = expected;
    if (known_bytes > 0) {
      int64_t ahead = ((static_cast<int64_t>(low) - expected) % modulus + modulus) % modulus;
      counter = expected + (ahead > modulus / 2 ? ahead - modulus : ahead);
      if (counter < 0) counter += modulus;
    }
    expected_ = static_cast<uint64_t>(std::max(expected, counter + 1));
    return node << 48 | static_cast<uint64_t>(counter);
  }

  const bool full_;
  const size_t fill_at_, trailer_;
  const std::vector<int64_t> nodes_;
  bool plain_ = false;  // true for bytes with header, trailer and a fill of at least a word
  std::vector<uint8_t> buffer_, fill_;
  std::optional<Record> record_;
  uint64_t expected_ = 0;
};

}  // namespace wattwire
