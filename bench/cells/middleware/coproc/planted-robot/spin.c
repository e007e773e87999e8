// An engine whose time per block is planted. It encrypts with the AES-128 of `scalar`, and then
// reads the clock until the planted time has passed since it began, so the time of AES is part of
// the planted time. Variables of the environment, with the prefix PLANTED_NAME, contain the times:
// …_BLOCK_NS of a block, and …_START_NS, once for each piece with blocks (0 if absent).
#define engine_start scalar_start
#define engine_encrypt scalar_encrypt
#define engine_description scalar_description
#include "device/scalar.c"
#undef engine_start
#undef engine_encrypt
#undef engine_description

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t block_ns, start_ns;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t planted_ns(const char *name, const char *otherwise) {
  const char *text = getenv(name);
  char *end = NULL;
  const uint64_t value = strtoull(text == NULL ? otherwise : text, &end, 10);
  if (*end == '\0' && (text == NULL || *text != '\0')) return value;
  fprintf(stderr, "%s: found \"%s\"; allowed: a number of nanoseconds\n", name, text);
  exit(2);
}

void engine_start(void) {
  scalar_start();
  block_ns = planted_ns(PLANTED_NAME "_BLOCK_NS", "");
  start_ns = planted_ns(PLANTED_NAME "_START_NS", "0");
}

void engine_encrypt(const uint8_t key[16], uint8_t *blocks, size_t count) {
  const uint64_t due_ns = now_ns() + start_ns + count * block_ns;
  scalar_encrypt(key, blocks, count);
  while (now_ns() < due_ns) {
  }
}

const char *engine_description(void) { return "AES-128 in a planted time\t" __VERSION__; }
