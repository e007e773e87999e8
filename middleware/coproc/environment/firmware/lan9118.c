// The driver of the LAN9118. Registers and commands: SMSC LAN9118 data sheet, chapters 3 and 5.
#include "ethernet.h"

#ifndef ETHERNET_BASE
#error "ETHERNET_BASE is the address of the controller on this board"
#endif

enum {
  RX_DATA = 0x00,
  TX_DATA = 0x20,
  RX_STATUS = 0x40,
  TX_STATUS = 0x48,
  BYTE_TEST = 0x64,
  RX_CFG = 0x6C,
  TX_CFG = 0x70,
  HW_CFG = 0x74,
  RX_DP_CTRL = 0x78,
  RX_FIFO_INF = 0x7C,
  TX_FIFO_INF = 0x80,
  MAC_CSR_CMD = 0xA4,
  MAC_CSR_DATA = 0xA8,
};
enum { MAC_CR = 1, MAC_ADDRH = 2, MAC_ADDRL = 3 };

static const uint32_t HW_CFG_RESET = 1, HW_CFG_MUST_BE_ONE = 1 << 20;
static const uint32_t TX_CFG_ON = 1 << 1;
static const uint32_t MAC_CR_RECEIVE = 1 << 2, MAC_CR_TRANSMIT = 1 << 3;
static const uint32_t MAC_CSR_BUSY = 1U << 31;
static const uint32_t TX_FIRST_SEGMENT = 1 << 13, TX_LAST_SEGMENT = 1 << 12;
static const uint32_t RX_DISCARD = 1U << 31;
static const uint32_t RX_STATUS_ERROR = 1 << 15;
enum { CHECKSUM_BYTES = 4, FIFO_BLOCK = 4 };

static volatile uint32_t *at(uint32_t offset) {
  return (volatile uint32_t *)(ETHERNET_BASE + offset);
}

static void write_mac(uint32_t number, uint32_t value) {
  while ((*at(MAC_CSR_CMD) & MAC_CSR_BUSY) != 0) {
  }
  *at(MAC_CSR_DATA) = value;
  *at(MAC_CSR_CMD) = MAC_CSR_BUSY | number;
  while ((*at(MAC_CSR_CMD) & MAC_CSR_BUSY) != 0) {
  }
}

void ethernet_start(const uint8_t address[6]) {
  while (*at(BYTE_TEST) != 0x87654321) {
  }
  *at(HW_CFG) = HW_CFG_RESET;
  while ((*at(HW_CFG) & HW_CFG_RESET) != 0) {
  }
  *at(HW_CFG) = HW_CFG_MUST_BE_ONE | 5 << 16;
  write_mac(MAC_ADDRL, (uint32_t)address[0] | (uint32_t)address[1] << 8 |
                           (uint32_t)address[2] << 16 | (uint32_t)address[3] << 24);
  write_mac(MAC_ADDRH, (uint32_t)address[4] | (uint32_t)address[5] << 8);
  *at(RX_CFG) = 0;
  *at(TX_CFG) = TX_CFG_ON;
  write_mac(MAC_CR, MAC_CR_RECEIVE | MAC_CR_TRANSMIT);
}

size_t ethernet_receive(uint32_t *words, size_t bytes) {
  if ((*at(RX_FIFO_INF) >> 16 & 0xFF) == 0) return 0;
  const uint32_t status = *at(RX_STATUS);
  const size_t length = status >> 16 & 0x3FFF, count = (length + 3) / 4;
  if (length > bytes + CHECKSUM_BYTES || length < CHECKSUM_BYTES || (status & RX_STATUS_ERROR)) {
    // The controller can skip a frame only if it has at least four words.
    if (count >= FIFO_BLOCK) {
      *at(RX_DP_CTRL) = RX_DISCARD;
      while ((*at(RX_DP_CTRL) & RX_DISCARD) != 0) {
      }
    } else {
      for (size_t word = 0; word < count; ++word) (void)*at(RX_DATA);
    }
    return 0;
  }
  for (size_t word = 0; word < count; ++word) words[word] = *at(RX_DATA);
  return length - CHECKSUM_BYTES;
}

void ethernet_send(const uint32_t *words, size_t bytes) {
  const size_t count = (bytes + 3) / 4;
  while ((*at(TX_FIFO_INF) & 0xFFFF) < 4 * (count + 2)) {
  }
  *at(TX_DATA) = TX_FIRST_SEGMENT | TX_LAST_SEGMENT | (uint32_t)bytes;
  *at(TX_DATA) = (uint32_t)bytes;
  for (size_t word = 0; word < count; ++word) *at(TX_DATA) = words[word];
  while ((*at(TX_FIFO_INF) >> 16 & 0xFF) != 0) (void)*at(TX_STATUS);
}
