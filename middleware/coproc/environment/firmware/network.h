// ARP, IPv4 and UDP of a device with one address and one port, without fragments and options.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Answers a frame in place. Returns the length of the frame to send, or 0. The frame begins two
// bytes after a multiple of four, so that the data of UDP is aligned.
size_t network_answer(uint8_t *frame, size_t bytes, size_t memory_bytes);

extern const uint8_t network_mac[6];
