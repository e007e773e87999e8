#include "network.h"

#include "device/answer.h"

const uint8_t network_mac[6] = {0x02, 0x57, 0x57, 0x00, 0x00, 0x01};  // locally administered
static const uint8_t own_ip[4] = {10, 0, 2, 15};  // the guest of the emulator's network

enum {
  TYPE_AT = 12,
  ETHERNET_BYTES = 14,
  IP_BYTES = 20,
  UDP_BYTES = 8,
  IP_AT = ETHERNET_BYTES,
  UDP_AT = IP_AT + IP_BYTES,
  DATA_AT = UDP_AT + UDP_BYTES,
  ARP_BYTES = 28,
  FRAME_BYTES_MIN = 60,
  PORT = 7000,
};

static unsigned get16(const uint8_t *bytes) { return (unsigned)bytes[0] << 8 | bytes[1]; }

static void put16(uint8_t *bytes, unsigned value) {
  bytes[0] = (uint8_t)(value >> 8);
  bytes[1] = (uint8_t)value;
}

static int equal(const uint8_t *a, const uint8_t *b, size_t bytes) {
  for (size_t at = 0; at < bytes; ++at)
    if (a[at] != b[at]) return 0;
  return 1;
}

static void copy(uint8_t *to, const uint8_t *from, size_t bytes) {
  for (size_t at = 0; at < bytes; ++at) to[at] = from[at];
}

static void swap(uint8_t *a, uint8_t *b, size_t bytes) {
  for (size_t at = 0; at < bytes; ++at) {
    const uint8_t byte = a[at];
    a[at] = b[at];
    b[at] = byte;
  }
}

static unsigned checksum(const uint8_t *bytes, size_t count) {
  unsigned sum = 0;
  for (size_t at = 0; at < count; at += 2) sum += get16(bytes + at);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return ~sum & 0xFFFF;
}

static size_t answer_arp(uint8_t *frame, size_t bytes) {
  enum { OPERATION = 6, SENDER_MAC = 8, SENDER_IP = 14, TARGET_MAC = 18, TARGET_IP = 24 };
  static const uint8_t ethernet_ipv4_request[8] = {0, 1, 8, 0, 6, 4, 0, 1};
  uint8_t *arp = frame + ETHERNET_BYTES;
  if (bytes < ETHERNET_BYTES + ARP_BYTES || !equal(arp, ethernet_ipv4_request, 8) ||
      !equal(arp + TARGET_IP, own_ip, 4))
    return 0;
  arp[OPERATION + 1] = 2;
  copy(arp + TARGET_MAC, arp + SENDER_MAC, 10);  // MAC and IP address
  copy(arp + SENDER_MAC, network_mac, 6);
  copy(arp + SENDER_IP, own_ip, 4);
  copy(frame, frame + 6, 6);
  copy(frame + 6, network_mac, 6);
  for (size_t at = ETHERNET_BYTES + ARP_BYTES; at < FRAME_BYTES_MIN; ++at) frame[at] = 0;
  return FRAME_BYTES_MIN;
}

static size_t answer_udp(uint8_t *frame, size_t bytes, size_t memory_bytes) {
  uint8_t *ip = frame + IP_AT, *udp = frame + UDP_AT;
  if (bytes < DATA_AT || ip[0] != 0x45 || ip[9] != 17 || !equal(ip + 16, own_ip, 4)) return 0;
  const int is_fragment = (get16(ip + 6) & 0x3FFF) != 0;
  const size_t ip_bytes = get16(ip + 2), udp_bytes = get16(udp + 4);
  if (is_fragment || checksum(ip, IP_BYTES) != 0 || get16(udp + 2) != PORT ||
      udp_bytes < UDP_BYTES || ip_bytes != IP_BYTES + udp_bytes ||
      bytes < ETHERNET_BYTES + ip_bytes)
    return 0;
  const size_t answered = answer(frame + DATA_AT, udp_bytes - UDP_BYTES, memory_bytes - DATA_AT);
  if (answered == 0) return 0;
  copy(frame, frame + 6, 6);
  copy(frame + 6, network_mac, 6);
  swap(ip + 12, ip + 16, 4);
  swap(udp, udp + 2, 2);
  put16(udp + 4, (unsigned)(UDP_BYTES + answered));
  put16(udp + 6, 0);  // no checksum
  put16(ip + 2, (unsigned)(IP_BYTES + UDP_BYTES + answered));
  ip[8] = 64;
  put16(ip + 10, 0);
  put16(ip + 10, checksum(ip, IP_BYTES));
  size_t total = DATA_AT + answered;
  for (; total < FRAME_BYTES_MIN; ++total) frame[total] = 0;
  return total;
}

size_t network_answer(uint8_t *frame, size_t bytes, size_t memory_bytes) {
  if (bytes < ETHERNET_BYTES) return 0;
  switch (get16(frame + TYPE_AT)) {
    case 0x0806:
      return answer_arp(frame, bytes);
    case 0x0800:
      return answer_udp(frame, bytes, memory_bytes);
    default:
      return 0;
  }
}
