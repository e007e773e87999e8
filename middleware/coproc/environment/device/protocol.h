// The pieces in which gateway and device exchange a message. Both are little-endian. The device
// answers each piece with a piece of the same offset and size, so it needs no memory for messages.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  // The frame of C-40: sequence, send time and key before the blocks, the sequence after them.
  BLOCKS_AT = 32,
  TRAILER_BYTES = 8,
  BLOCK_BYTES = 16,
  KEY_BYTES = 16,
};

enum operation {
  OPERATION_ECHO = 0x57000001,
  OPERATION_ENCRYPT = 0x57000002,   // encrypts the blocks of the message that are in the piece
  OPERATION_DESCRIBE = 0x57000003,  // replaces the data by the device's description
};

struct piece {
  uint32_t operation;
  uint32_t call;           // the gateway's call number
  uint32_t offset;         // of the data in the message, a multiple of BLOCK_BYTES
  uint32_t message_bytes;  // the length of the message
  union {
    uint8_t key[KEY_BYTES];  // in requests
    struct {
      uint32_t ticks;  // of the device's timer while it encrypted; 0 without a timer
      uint32_t ticks_per_second;
      uint32_t blocks;  // number of encrypted blocks
      uint32_t reserved;
    } work;  // in replies
  };
};

enum { PIECE_HEAD_BYTES = sizeof(struct piece) };
