#include "answer.h"

#include "engine.h"
#include "protocol.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Replaces the data by the description. Returns the size of the answer.
static size_t describe(uint8_t *piece, size_t memory_bytes) {
  const char *text = engine_description();
  size_t size = PIECE_HEAD_BYTES;
  for (; *text != '\0' && size < memory_bytes; ++text) piece[size++] = (uint8_t)*text;
  return size;
}

static void encrypt(struct piece *head, uint8_t *data, size_t data_bytes) {
  const size_t first = larger(head->offset, BLOCKS_AT);
  const size_t end =
      smaller(head->offset + data_bytes, (size_t)head->message_bytes - TRAILER_BYTES);
  const size_t blocks = end > first ? (end - first) / BLOCK_BYTES : 0;
  const uint32_t begin = timer_ticks();
  if (blocks > 0) engine_encrypt(head->key, data + (first - head->offset), blocks);
  const uint32_t ticks = timer_ticks() - begin;
  head->work.ticks = ticks;
  head->work.ticks_per_second = timer_ticks_per_second();
  head->work.blocks = (uint32_t)blocks;
  head->work.reserved = 0;
}

size_t answer(uint8_t *piece, size_t size, size_t memory_bytes) {
  if (size < PIECE_HEAD_BYTES || ((uintptr_t)piece & 3) != 0) return 0;
  struct piece *head = (struct piece *)piece;
  const size_t data_bytes = size - PIECE_HEAD_BYTES;
  if (head->offset > head->message_bytes || data_bytes > head->message_bytes - head->offset)
    return 0;
  switch (head->operation) {
    case OPERATION_ECHO:
      return size;
    case OPERATION_ENCRYPT:
      if (head->offset % BLOCK_BYTES != 0 || head->message_bytes < BLOCKS_AT + TRAILER_BYTES)
        return 0;
      encrypt(head, piece + PIECE_HEAD_BYTES, data_bytes);
      return size;
    case OPERATION_DESCRIBE:
      return describe(piece, memory_bytes);
    default:
      return 0;
  }
}
