// Firmware of a device: the loop that polls.
#include "device/engine.h"
#include "ethernet.h"
#include "firmware.h"
#include "network.h"

void firmware_run(void) {
  engine_start();
  ethernet_start(network_mac);
  // The driver moves whole words. For the data of UDP to be aligned, a frame is answered two bytes
  // after a multiple of four.
  static uint32_t received[(ETHERNET_BYTES_MAX + 6) / 4];
  static uint32_t work[(ETHERNET_BYTES_MAX + 8) / 4];
  for (;;) {
    const size_t bytes = ethernet_receive(received, ETHERNET_BYTES_MAX);
    if (bytes == 0) continue;
    uint8_t *frame = (uint8_t *)work + 2;
    for (size_t at = 0; at < bytes; ++at) frame[at] = ((uint8_t *)received)[at];
    const size_t answered = network_answer(frame, bytes, ETHERNET_BYTES_MAX);
    if (answered == 0) continue;
    for (size_t at = 0; at < answered; ++at) ((uint8_t *)received)[at] = frame[at];
    ethernet_send(received, answered);
  }
}
