// AES-128 (FIPS 197) in portable C, with a table of 1 KiB for SubBytes, ShiftRows and MixColumns.
// The other three columns of a round use the same table with rotated words, which costs nothing on
// Arm. It needs no C library.
#include "aes.h"
#include "engine.h"

static uint8_t substitution[256];
static uint32_t table[256];

void engine_start(void) { make_tables(substitution, table); }

static void store(uint8_t *bytes, uint32_t word) {
  for (unsigned at = 0; at < 4; ++at) bytes[at] = (uint8_t)(word >> 8 * at);
}

static uint32_t mixed(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return table[a & 0xFF] ^ rotated(table[b >> 8 & 0xFF], 8) ^ rotated(table[c >> 16 & 0xFF], 16) ^
         rotated(table[d >> 24], 24);
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
  store(block, substituted(substitution, a, b, c, d) ^ keys[0]);
  store(block + 4, substituted(substitution, b, c, d, a) ^ keys[1]);
  store(block + 8, substituted(substitution, c, d, a, b) ^ keys[2]);
  store(block + 12, substituted(substitution, d, a, b, c) ^ keys[3]);
}

void engine_encrypt(const uint8_t key[16], uint8_t *blocks, size_t count) {
  uint32_t keys[ROUND_KEY_WORDS];
  expand(substitution, key, keys);
  for (; count > 0; --count, blocks += 16) encrypt_block(keys, blocks);
}

const char *engine_description(void) { return "AES-128 in C\t" __VERSION__; }
