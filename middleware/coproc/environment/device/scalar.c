// AES-128 (FIPS 197) in portable C, with one table of 1 KB for SubBytes, ShiftRows and MixColumns.
// The other three columns of a round use the same table with rotated words, which costs nothing on
// Arm. It needs no C library.
#include "engine.h"

enum { ROUNDS = 10, WORDS = 4 };

static uint8_t substitution[256];
static uint32_t table[256];

static uint8_t doubled(uint8_t value) {
  return (uint8_t)(value << 1 ^ ((value & 0x80) != 0 ? 0x1B : 0));
}

static uint32_t rotated(uint32_t word, unsigned bits) { return word << bits | word >> (32 - bits); }

// Computes the S-box by powers of the generator x + 1 of GF(2^8), and the table of rounds.
void engine_start(void) {
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

static uint32_t word_at(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

static void store(uint8_t *bytes, uint32_t word) {
  for (unsigned at = 0; at < 4; ++at) bytes[at] = (uint8_t)(word >> 8 * at);
}

static uint32_t substituted(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (uint32_t)substitution[a & 0xFF] | (uint32_t)substitution[b >> 8 & 0xFF] << 8 |
         (uint32_t)substitution[c >> 16 & 0xFF] << 16 | (uint32_t)substitution[d >> 24] << 24;
}

static uint32_t mixed(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return table[a & 0xFF] ^ rotated(table[b >> 8 & 0xFF], 8) ^ rotated(table[c >> 16 & 0xFF], 16) ^
         rotated(table[d >> 24], 24);
}

static void expand(const uint8_t key[16], uint32_t *keys) {
  uint8_t constant = 1;
  for (unsigned at = 0; at < WORDS; ++at) keys[at] = word_at(key + 4 * at);
  for (unsigned at = WORDS; at < WORDS * (ROUNDS + 1); ++at) {
    uint32_t word = keys[at - 1];
    if (at % WORDS == 0) {
      word = rotated(word, 24);
      word = substituted(word, word, word, word) ^ constant;
      constant = doubled(constant);
    }
    keys[at] = keys[at - WORDS] ^ word;
  }
}

static void encrypt_block(const uint32_t *keys, uint8_t *block) {
  uint32_t a = word_at(block) ^ keys[0], b = word_at(block + 4) ^ keys[1];
  uint32_t c = word_at(block + 8) ^ keys[2], d = word_at(block + 12) ^ keys[3];
  for (unsigned round = 1; round < ROUNDS; ++round) {
    keys += WORDS;
    const uint32_t next_a = mixed(a, b, c, d) ^ keys[0], next_b = mixed(b, c, d, a) ^ keys[1];
    const uint32_t next_c = mixed(c, d, a, b) ^ keys[2], next_d = mixed(d, a, b, c) ^ keys[3];
    a = next_a, b = next_b, c = next_c, d = next_d;
  }
  keys += WORDS;
  store(block, substituted(a, b, c, d) ^ keys[0]);
  store(block + 4, substituted(b, c, d, a) ^ keys[1]);
  store(block + 8, substituted(c, d, a, b) ^ keys[2]);
  store(block + 12, substituted(d, a, b, c) ^ keys[3]);
}

void engine_encrypt(const uint8_t key[16], uint8_t *blocks, size_t count) {
  uint32_t keys[WORDS * (ROUNDS + 1)];
  expand(key, keys);
  for (; count > 0; --count, blocks += 16) encrypt_block(keys, blocks);
}

const char *engine_description(void) { return "AES-128 in C\t" __VERSION__; }
