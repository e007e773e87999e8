// Encrypting replies: the layout of their requests, and the specs that no such reply can meet
// (C-40).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "aes128.hpp"
#include "payload.hpp"
#include "spec.hpp"

namespace wattwire {

inline constexpr size_t kKeyAt = 16, kBlocksAt = 32, kTrailerBytes = 8;
inline constexpr size_t kFrameBytes = kBlocksAt + kTrailerBytes;  // a payload without blocks

// Encrypts the blocks of a request in place. Bytes that are no whole block stay unchanged.
inline void encrypt_blocks(uint8_t* request, size_t size) {
  if (size < kFrameBytes) return;
  const Aes128 cipher(request + kKeyAt);
  const size_t blocks = (size - kFrameBytes) / Aes128::kBlockBytes;
  for (size_t block = 0; block < blocks; ++block)
    cipher.encrypt(request + kBlocksAt + block * Aes128::kBlockBytes);
}

// Returns the correct reply to the requests of a run; its sequences and send time are 0.
inline std::vector<uint8_t> encrypted_reply(uint64_t seed, size_t size) {
  std::vector<uint8_t> out(size);
  const std::vector<uint8_t> fill = fill_stream(seed, size - kKeyAt - kTrailerBytes);
  std::copy(fill.begin(), fill.end(), out.begin() + kKeyAt);
  encrypt_blocks(out.data(), size);
  return out;
}

inline void check_encryption(const Spec& spec) {
  const std::string with = " with reply.encrypt; allowed: ";
  for (const auto& [key, allowed] :
       {std::pair("pattern", "service"), std::pair("payload.encoding", "bytes"),
        std::pair("payload.literal", "")})
    if (spec.string(key) != allowed)
      throw Unsupported(std::string(key) + " " + spec.string(key) + with +
                        (*allowed == '\0' ? "an empty literal" : allowed));
  const int64_t size = spec.integer("payload.bytes");
  const auto frame = static_cast<int64_t>(kFrameBytes);
  const auto block = static_cast<int64_t>(Aes128::kBlockBytes);
  if (size >= frame && (size - frame) % block == 0) return;
  throw Unsupported("payload.bytes " + std::to_string(size) + with +
                    "40 + 16 k, for k blocks of 16 bytes; choose such a size, or another reply");
}

}  // namespace wattwire
