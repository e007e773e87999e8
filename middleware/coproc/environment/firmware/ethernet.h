// The board's Ethernet controller, by polling.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { ETHERNET_BYTES_MAX = 1514 };

// Resets the controller, sets its address if it has one, and starts receiver and transmitter.
void ethernet_start(const uint8_t address[6]);

// Reads a frame without its checksum. Returns its length, or 0 if none has arrived. Frames that do
// not fit are discarded.
size_t ethernet_receive(uint32_t *words, size_t bytes);

void ethernet_send(const uint32_t *words, size_t bytes);
