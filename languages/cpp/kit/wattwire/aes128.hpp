// AES-128 (FIPS 197) for encrypting replies (C-40): one block at a time, without tables of rounds.
// It favours brevity over speed, because a client computes its expected reply only once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wattwire {

// Multiplies by x in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
constexpr uint8_t aes_doubled(uint8_t value) {
  return static_cast<uint8_t>(value << 1 ^ ((value & 0x80) != 0 ? 0x1B : 0));
}

// Computes the S-box: the inverse in GF(2^8), by powers of the generator x + 1, and then the
// affine map.
constexpr std::array<uint8_t, 256> aes_substitution() {
  std::array<uint8_t, 256> powers{}, logarithms{}, out{};
  uint8_t power = 1;
  for (size_t exponent = 0; exponent < 255; ++exponent) {
    powers[exponent] = power;
    logarithms[power] = static_cast<uint8_t>(exponent);
    power = static_cast<uint8_t>(power ^ aes_doubled(power));
  }
  for (size_t value = 0; value < 256; ++value) {
    const unsigned inverse = value == 0 ? 0U : powers[(255U - logarithms[value]) % 255U];
    unsigned mapped = 0x63;
    for (unsigned turn = 0; turn < 5; ++turn) mapped ^= (inverse << turn | inverse >> (8 - turn));
    out[value] = static_cast<uint8_t>(mapped);
  }
  return out;
}

inline constexpr std::array<uint8_t, 256> kAesSubstitution = aes_substitution();

class Aes128 {
 public:
  static constexpr size_t kBlockBytes = 16;

  explicit Aes128(const uint8_t* key) {
    std::memcpy(round_keys_, key, kBlockBytes);
    uint8_t round_constant = 1;
    for (size_t at = kBlockBytes; at < sizeof round_keys_; at += 4) {
      uint8_t word[4];
      std::memcpy(word, &round_keys_[at - 4], 4);
      if (at % kBlockBytes == 0) {
        const uint8_t first = word[0];
        for (size_t i = 0; i < 3; ++i) word[i] = kAesSubstitution[word[i + 1]];
        word[3] = kAesSubstitution[first];
        word[0] = static_cast<uint8_t>(word[0] ^ round_constant);
        round_constant = aes_doubled(round_constant);
      }
      for (size_t i = 0; i < 4; ++i)
        round_keys_[at + i] = static_cast<uint8_t>(round_keys_[at + i - kBlockBytes] ^ word[i]);
    }
  }

  // Encrypts a block in place.
  void encrypt(uint8_t* block) const {
    add_round_key(block, 0);
    for (size_t round = 1; round < kRounds; ++round) {
      substitute_and_shift(block);
      for (size_t column = 0; column < 4; ++column) mix(block + 4 * column);
      add_round_key(block, round);
    }
    substitute_and_shift(block);
    add_round_key(block, kRounds);
  }

 private:
  static constexpr size_t kRounds = 10;

  void add_round_key(uint8_t* block, size_t round) const {
    for (size_t at = 0; at < kBlockBytes; ++at)
      block[at] = static_cast<uint8_t>(block[at] ^ round_keys_[kBlockBytes * round + at]);
  }

  static void substitute_and_shift(uint8_t* block) {
    uint8_t before[kBlockBytes];
    std::memcpy(before, block, kBlockBytes);
    for (size_t at = 0; at < kBlockBytes; ++at)
      block[at] = kAesSubstitution[before[(at + 4 * (at % 4)) % kBlockBytes]];
  }

  static void mix(uint8_t* column) {
    const uint8_t sum = static_cast<uint8_t>(column[0] ^ column[1] ^ column[2] ^ column[3]);
    const uint8_t first = column[0];
    for (size_t at = 0; at < 4; ++at) {
      const uint8_t next = at == 3 ? first : column[at + 1];
      const uint8_t pair = static_cast<uint8_t>(column[at] ^ next);
      column[at] = static_cast<uint8_t>(column[at] ^ aes_doubled(pair) ^ sum);
    }
  }

  uint8_t round_keys_[kBlockBytes * (kRounds + 1)];
};

}  // namespace wattwire
