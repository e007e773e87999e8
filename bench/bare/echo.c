// A UDP ping-pong as anybody would write it: `echo serve` prints its port and echoes until it is
// ended; `echo ping PORT BYTES COUNT` prints the median round trip in ns.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "median.h"

static char buffer[65536];

static int serve(int fd, struct sockaddr_in* own) {
  socklen_t length = sizeof *own;
  if (bind(fd, (struct sockaddr*)own, length) != 0) return 1;
  getsockname(fd, (struct sockaddr*)own, &length);
  printf("%d\n", ntohs(own->sin_port));
  fflush(stdout);
  for (;;) {
    struct sockaddr_in peer;
    length = sizeof peer;
    ssize_t got = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr*)&peer, &length);
    if (got >= 0) sendto(fd, buffer, (size_t)got, 0, (struct sockaddr*)&peer, length);
  }
}

static int ping(int fd, const struct sockaddr_in* peer, size_t bytes, size_t count) {
  struct timeval second = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  int64_t* times = calloc(count, sizeof *times);
  size_t answered = 0;
  for (size_t k = 0; k < count; ++k) {
    int64_t begin = now_ns();
    sendto(fd, buffer, bytes, 0, (const struct sockaddr*)peer, sizeof *peer);
    if (recvfrom(fd, buffer, sizeof buffer, 0, NULL, NULL) >= 0)
      times[answered++] = now_ns() - begin;
  }
  if (answered * 10 < count * 9) return 1;
  print_median(times, answered);
  return 0;
}

int main(int argc, char** argv) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (argc == 2 && strcmp(argv[1], "serve") == 0) return serve(fd, &address);
  if (argc != 5 || strcmp(argv[1], "ping") != 0) return 2;
  address.sin_port = htons((uint16_t)atoi(argv[2]));
  return ping(fd, &address, (size_t)atol(argv[3]), (size_t)atol(argv[4]));
}
