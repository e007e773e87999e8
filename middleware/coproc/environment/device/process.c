// A device as a process: answers the pieces that arrive at ADDRESS:PORT, one datagram each.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "answer.h"
#include "engine.h"

uint32_t timer_ticks(void) { return 0; }

uint32_t timer_ticks_per_second(void) { return 0; }

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: device ADDRESS PORT\n"), 2;
  struct sockaddr_in own = {.sin_family = AF_INET};
  own.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
  const int opened = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (inet_pton(AF_INET, argv[1], &own.sin_addr) != 1 ||
      bind(opened, (struct sockaddr *)&own, sizeof own) != 0)
    return perror("bind"), 1;
  engine_start();
  static _Alignas(16) uint8_t piece[65536];
  for (;;) {
    struct sockaddr_in peer;
    socklen_t peer_bytes = sizeof peer;
    const ssize_t size =
        recvfrom(opened, piece, sizeof piece, 0, (struct sockaddr *)&peer, &peer_bytes);
    if (size < 0) continue;  // an earlier answer met a closed port
    const size_t answered = answer(piece, (size_t)size, sizeof piece);
    if (answered > 0) sendto(opened, piece, answered, 0, (struct sockaddr *)&peer, peer_bytes);
  }
}
