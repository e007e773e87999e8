// What the engines in C and CUDA share: the tables and the round keys of AES-128 (FIPS 197).
#pragma once

#include <stdint.h>

enum { ROUNDS = 10, WORDS = 4, ROUND_KEY_WORDS = WORDS * (ROUNDS + 1) };

static inline uint8_t doubled(uint8_t value) {
  return (uint8_t)(value << 1 ^ ((value & 0x80) != 0 ? 0x1B : 0));
}

static inline uint32_t rotated(uint32_t word, unsigned bits) {
  return word << bits | word >> (32 - bits);
}

static inline uint32_t word_at(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

// Computes the S-box by powers of the generator x + 1 of GF(2^8), and the table of rounds: the
// first column of SubBytes and MixColumns, whose bytes are 2s, s, s, 3s for the S-box's value s.
static inline void make_tables(uint8_t substitution[256], uint32_t table[256]) {
  uint8_t powers[255], logarithms[256];  // the logarithm of 0 is not used
  uint8_t power = 1;
  for (unsigned exponent = 0; exponent < 255; ++exponent) {
    powers[exponent] = power;
    logarithms[power] = (uint8_t)exponent;
    power = (uint8_t)(power ^ doubled(power));
  }
  for (unsigned value = 0; value < 256; ++value) {
    const unsigned inverse = value == 0 ? 0 : powers[(255U - logarithms[value]) % 255U];
    unsigned mapped = 0x63;
    for (unsigned turn = 0; turn < 5; ++turn) mapped ^= inverse << turn | inverse >> (8 - turn);
    const uint8_t s = (uint8_t)mapped, twice = doubled(s);
    substitution[value] = s;
    table[value] = (uint32_t)twice | (uint32_t)s << 8 | (uint32_t)s << 16 |
                   (uint32_t)(uint8_t)(s ^ twice) << 24;
  }
}

// Returns the S-box's values of a byte of each word, in the order of ShiftRows.
static inline uint32_t substituted(const uint8_t substitution[256], uint32_t a, uint32_t b,
                                   uint32_t c, uint32_t d) {
  return (uint32_t)substitution[a & 0xFF] | (uint32_t)substitution[b >> 8 & 0xFF] << 8 |
         (uint32_t)substitution[c >> 16 & 0xFF] << 16 | (uint32_t)substitution[d >> 24] << 24;
}

// Expands a key to the keys of all rounds.
static inline void expand(const uint8_t substitution[256], const uint8_t key[16],
                          uint32_t keys[ROUND_KEY_WORDS]) {
  uint8_t constant = 1;
  for (unsigned at = 0; at < WORDS; ++at) keys[at] = word_at(key + 4 * at);
  for (unsigned at = WORDS; at < ROUND_KEY_WORDS; ++at) {
    uint32_t word = keys[at - 1];
    if (at % WORDS == 0) {
      word = rotated(word, 24);
      word = substituted(substitution, word, word, word, word) ^ constant;
      constant = doubled(constant);
    }
    keys[at] = keys[at - WORDS] ^ word;
  }
}
