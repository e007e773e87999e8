// The driver of a network device of virtio over memory-mapped registers: Virtual I/O Device
// (VIRTIO) 1.1, sections 2.6 (split queues), 3.1.1 (start), 4.2 (registers) and 5.1 (network).
#include "ethernet.h"

#ifndef ETHERNET_BASE
#error "ETHERNET_BASE is the address of the device's registers on this board"
#endif

enum {
  MAGIC_VALUE = 0x00,
  VERSION = 0x04,
  DEVICE_ID = 0x08,
  DRIVER_FEATURES = 0x20,
  DRIVER_FEATURES_SELECT = 0x24,
  QUEUE_SELECT = 0x30,
  QUEUE_NUMBER_MAX = 0x34,
  QUEUE_NUMBER = 0x38,
  QUEUE_READY = 0x44,
  QUEUE_NOTIFY = 0x50,
  STATUS = 0x70,
  QUEUE_DESCRIPTORS = 0x80,
  QUEUE_DRIVER = 0x90,
  QUEUE_DEVICE = 0xA0,
};
enum { STATUS_ACKNOWLEDGE = 1, STATUS_DRIVER = 2, STATUS_DRIVER_OK = 4, STATUS_FEATURES_OK = 8 };
enum { NETWORK_DEVICE = 1, RECEIVE_QUEUE = 0, TRANSMIT_QUEUE = 1 };
enum { WRITTEN_BY_DEVICE = 2, NO_INTERRUPT = 1 };
enum { HEAD_BYTES = 12, BUFFERS = 16 };  // HEAD_BYTES: of struct virtio_net_hdr, which stays 0

struct queue {
  struct {
    uint64_t address;
    uint32_t bytes;
    uint16_t flags, next;
  } descriptors[BUFFERS];
  struct {
    uint16_t flags, index, ring[BUFFERS], event;
  } available;
  struct {
    _Alignas(4) uint16_t flags;
    uint16_t index;
    struct {
      uint32_t descriptor, bytes;
    } ring[BUFFERS];
    uint16_t event;
  } used;
};

static _Alignas(16) volatile struct queue queues[2];
static uint16_t received_index;  // of the receive queue's next used buffer, modulo 2^16
static uint32_t buffers[BUFFERS][(HEAD_BYTES + ETHERNET_BYTES_MAX + 3) / 4];
static uint32_t outgoing[(HEAD_BYTES + ETHERNET_BYTES_MAX + 3) / 4];

static volatile uint32_t *at(uint32_t offset) {
  return (volatile uint32_t *)(ETHERNET_BASE + offset);
}

// The device reads and writes memory as another processor does.
static void order_memory(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static void write_address(uint32_t offset, volatile void *address) {
  *at(offset) = (uint32_t)(uintptr_t)address;
  *at(offset + 4) = (uint32_t)((uint64_t)(uintptr_t)address >> 32);
}

static void start_queue(uint32_t number) {
  volatile struct queue *queue = &queues[number];
  queue->available.flags = NO_INTERRUPT;
  *at(QUEUE_SELECT) = number;
  while (*at(QUEUE_NUMBER_MAX) < BUFFERS) {
  }
  *at(QUEUE_NUMBER) = BUFFERS;
  write_address(QUEUE_DESCRIPTORS, queue->descriptors);
  write_address(QUEUE_DRIVER, &queue->available);
  write_address(QUEUE_DEVICE, &queue->used);
  *at(QUEUE_READY) = 1;
}

// Hands a buffer to the device.
static void offer(uint32_t number, uint32_t descriptor, uint32_t *words, size_t bytes,
                  uint16_t flags) {
  volatile struct queue *queue = &queues[number];
  const uint16_t index = queue->available.index;
  queue->descriptors[descriptor].address = (uintptr_t)words;
  queue->descriptors[descriptor].bytes = (uint32_t)bytes;
  queue->descriptors[descriptor].flags = flags;
  queue->available.ring[index % BUFFERS] = (uint16_t)descriptor;
  order_memory();
  queue->available.index = (uint16_t)(index + 1);
  order_memory();
  *at(QUEUE_NOTIFY) = number;
}

static void offer_receive(uint32_t descriptor) {
  offer(RECEIVE_QUEUE, descriptor, buffers[descriptor], sizeof buffers[descriptor],
        WRITTEN_BY_DEVICE);
}

// A driver that does not negotiate VIRTIO_NET_F_MAC chooses its address, and the device receives
// frames for every address (5.1.5, 5.1.6.5.1).
void ethernet_start(const uint8_t address[6]) {
  (void)address;
  while (*at(MAGIC_VALUE) != 0x74726976 || *at(VERSION) != 2 || *at(DEVICE_ID) != NETWORK_DEVICE) {
  }
  *at(STATUS) = 0;
  *at(STATUS) = STATUS_ACKNOWLEDGE;
  *at(STATUS) = STATUS_ACKNOWLEDGE | STATUS_DRIVER;
  *at(DRIVER_FEATURES_SELECT) = 0;
  *at(DRIVER_FEATURES) = 0;
  *at(DRIVER_FEATURES_SELECT) = 1;
  *at(DRIVER_FEATURES) = 1;  // VIRTIO_F_VERSION_1, bit 32
  *at(STATUS) = STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK;
  while ((*at(STATUS) & STATUS_FEATURES_OK) == 0) {
  }
  start_queue(RECEIVE_QUEUE);
  start_queue(TRANSMIT_QUEUE);
  *at(STATUS) = STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK;
  for (uint32_t descriptor = 0; descriptor < BUFFERS; ++descriptor) offer_receive(descriptor);
}

size_t ethernet_receive(uint32_t *words, size_t bytes) {
  volatile struct queue *queue = &queues[RECEIVE_QUEUE];
  if (queue->used.index == received_index) return 0;
  order_memory();
  const uint32_t descriptor = queue->used.ring[received_index % BUFFERS].descriptor;
  const size_t filled = queue->used.ring[received_index % BUFFERS].bytes;
  received_index = (uint16_t)(received_index + 1);
  const size_t length = filled > HEAD_BYTES ? filled - HEAD_BYTES : 0;
  const uint32_t *frame = buffers[descriptor] + HEAD_BYTES / 4;
  for (size_t word = 0; length <= bytes && word < (length + 3) / 4; ++word)
    words[word] = frame[word];
  offer_receive(descriptor);
  return length <= bytes ? length : 0;
}

// Waits until the device has sent the frame, so one buffer is enough.
void ethernet_send(const uint32_t *words, size_t bytes) {
  volatile struct queue *queue = &queues[TRANSMIT_QUEUE];
  for (size_t word = 0; word < (bytes + 3) / 4; ++word)
    outgoing[HEAD_BYTES / 4 + word] = words[word];
  offer(TRANSMIT_QUEUE, 0, outgoing, HEAD_BYTES + bytes, 0);
  while (queue->used.index != queue->available.index) {
  }
  order_memory();
}
