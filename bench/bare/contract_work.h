// The contract's work per message, for fair peers: bare programs that do what every node must do.
// They stamp and check the payload (C-19, C-21), read the clock (C-27), keep records (C-25), and
// have a thread that watches standard input (C-09). None of it is code of the kit.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "median.h"

enum { RECORDS_MAX = 1 << 18, FILL_AT = 16, TRAILER_BYTES = 8 };
static const int64_t UNKNOWN_NS = INT64_MIN;

struct record {
  uint64_t seq;
  int64_t intended_ns, begin_ns, end_ns;
  uint32_t bytes;
  uint16_t peer;
  uint8_t kind, flags;
};

static struct record* records;
static size_t recorded;
static uint64_t first_fill_word = 0x0807060504030201;

static void* watch_input(void* unused) {
  char chunk[4096];
  while (read(0, chunk, sizeof chunk) > 0) continue;
  pause();  // a client's standard input may be closed
  return unused;
}

// Allocates and touches the memory of the records, and starts the thread.
static int begin_work(void) {
  pthread_t thread;
  records = (struct record*)malloc(RECORDS_MAX * sizeof *records);
  if (records == NULL) return 0;
  memset(records, 0, RECORDS_MAX * sizeof *records);
  // With a second thread, glibc prepares each system call for cancellation.
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  return pthread_create(&thread, NULL, watch_input, NULL) == 0;
}

static void stamp(uint8_t* payload, size_t bytes, uint64_t seq, int64_t begin_ns) {
  memcpy(payload, &seq, sizeof seq);
  memcpy(payload + 8, &begin_ns, sizeof begin_ns);
  memcpy(payload + FILL_AT, &first_fill_word, sizeof first_fill_word);
  memcpy(payload + bytes - TRAILER_BYTES, &seq, sizeof seq);
}

// Returns whether an arrival has this length, its trailer and the first word of the fill.
static int is_valid(const uint8_t* payload, size_t bytes, size_t length, uint64_t* seq) {
  uint64_t fill, trailer;
  if (bytes != length) return 0;
  memcpy(seq, payload, sizeof *seq);
  memcpy(&fill, payload + FILL_AT, sizeof fill);
  memcpy(&trailer, payload + length - TRAILER_BYTES, sizeof trailer);
  return trailer == *seq && fill == first_fill_word;
}

static void keep_record(uint64_t seq, int64_t intended_ns, int64_t begin_ns, int64_t end_ns,
                        size_t bytes) {
  if (recorded == RECORDS_MAX) return;
  struct record* next = &records[recorded++];
  next->seq = seq;
  next->intended_ns = intended_ns;
  next->begin_ns = begin_ns;
  next->end_ns = end_ns;
  next->bytes = (uint32_t)bytes;
  next->peer = (uint16_t)(seq >> 48);
  next->kind = next->flags = 0;
}
