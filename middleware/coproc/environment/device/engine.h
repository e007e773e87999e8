// What an engine provides: AES-128 in the mode ECB, and its description.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Prepares the engine. Called once.
void engine_start(void);

// Encrypts `count` blocks of 16 bytes in place.
void engine_encrypt(const uint8_t key[16], uint8_t *blocks, size_t count);

// Returns name and version, separated by a tab.
const char *engine_description(void);
