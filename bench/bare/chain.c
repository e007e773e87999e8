// A UDP pipeline as anybody would write it, with a process per node. `chain sink COUNT` and
// `chain relay PORT` print their own port. The sink then prints the median latency in ns.
// `chain source PORT BYTES PERIOD_NS COUNT START_NS` sends to PORT. The payload has the time at
// which the source called sendto at offset 8. With `contract` before the role, a node also does
// the contract's work per message.
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "contract_work.h"

static uint8_t buffer[65536];
static int does_contract_work;
static size_t length_due;  // of the first arrival

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Binds a free port and prints it. A node of wattwire also limits its waits.
static int listen_on(int fd) {
  struct timeval second = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  struct sockaddr_in own = loopback(0);
  socklen_t length = sizeof own;
  if (bind(fd, (struct sockaddr*)&own, length) != 0) return 0;
  getsockname(fd, (struct sockaddr*)&own, &length);
  printf("%d\n", ntohs(own.sin_port));
  return fflush(stdout) == 0;
}

static ssize_t receive(int fd) {
  struct sockaddr_in peer;
  socklen_t length = sizeof peer;
  return recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr*)&peer, &length);
}

static ssize_t send_to(int fd, size_t bytes, const struct sockaddr_in* peer) {
  return sendto(fd, buffer, bytes, 0, (const struct sockaddr*)peer, sizeof *peer);
}

// Returns whether an arrival is valid, or nothing is checked.
static int accept_arrival(size_t bytes, uint64_t* seq) {
  if (!does_contract_work) return 1;
  if (length_due == 0) length_due = bytes;
  return is_valid(buffer, bytes, length_due, seq);
}

static int sink(int fd, size_t count) {
  int64_t* latencies_ns = calloc(count, sizeof *latencies_ns);
  size_t arrived = 0, idle_s = 0;
  while (arrived < count && idle_s < 3) {
    ssize_t bytes = receive(fd);
    int64_t arrived_ns = now_ns(), sent_ns;
    uint64_t seq;
    if (bytes < FILL_AT || !accept_arrival((size_t)bytes, &seq)) {
      idle_s += arrived > 0;
      continue;
    }
    memcpy(&sent_ns, buffer + 8, sizeof sent_ns);
    if (does_contract_work) keep_record(seq, UNKNOWN_NS, sent_ns, arrived_ns, (size_t)bytes);
    latencies_ns[arrived++] = arrived_ns - sent_ns;
  }
  if (arrived * 10 < count * 9) return 1;
  print_median(latencies_ns, arrived);
  return 0;
}

_Noreturn static void relay(int fd, const struct sockaddr_in* successor) {
  for (;;) {
    ssize_t bytes = receive(fd);
    if (bytes < 0) continue;
    if (!does_contract_work) {
      send_to(fd, (size_t)bytes, successor);
      continue;
    }
    int64_t entered_ns = now_ns();
    uint64_t seq;
    if (!accept_arrival((size_t)bytes, &seq)) continue;
    int64_t begin_ns = now_ns();
    if (send_to(fd, (size_t)bytes, successor) >= 0)
      keep_record(seq, entered_ns, begin_ns, now_ns(), (size_t)bytes);
  }
}

static int source(int fd, const struct sockaddr_in* successor, char** words) {
  size_t bytes = (size_t)atol(words[0]), count = (size_t)atol(words[2]);
  int64_t period_ns = atoll(words[1]), start_ns = atoll(words[3]);
  for (size_t k = 0; k < count; ++k) {
    int64_t due_ns = start_ns + (int64_t)k * period_ns;
    struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) continue;
    int64_t sent_ns = now_ns();
    stamp(buffer, bytes, k, sent_ns);
    send_to(fd, bytes, successor);
    if (does_contract_work) keep_record(k, due_ns, sent_ns, now_ns(), bytes);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "contract") == 0) {
    does_contract_work = 1;
    ++argv;
    --argc;
  }
  if (argc < 3 || (does_contract_work && !begin_work())) return 2;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in successor = loopback(atoi(argv[2]));
  if (strcmp(argv[1], "source") == 0 && argc == 7) return source(fd, &successor, argv + 3);
  if (!listen_on(fd)) return 1;
  if (strcmp(argv[1], "sink") == 0) return sink(fd, (size_t)atol(argv[2]));
  if (strcmp(argv[1], "relay") == 0) relay(fd, &successor);
  return 2;
}
