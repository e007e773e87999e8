// Answers pieces; the same code runs in processes and in firmware.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A timer that counts up. Devices without one return 0 and have 0 ticks per second.
uint32_t timer_ticks(void);
uint32_t timer_ticks_per_second(void);

// Replaces a piece of `size` bytes by its answer. Returns the size of the answer, or 0 if the piece
// is malformed and must not be answered. `memory_bytes` is the size of the buffer at `piece`.
size_t answer(uint8_t *piece, size_t size, size_t memory_bytes);
