// Prints the throughput of an engine in MB per second of CPU time: `engine_speed BYTES SECONDS`
// encrypts a buffer in place until the time is over, as `openssl speed -evp` does.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"

enum { TURNS = 256 };  // between two looks at the clock

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  const size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
  if (bytes == 0 || bytes % 16 != 0)
    return fprintf(stderr, "usage: engine_speed BYTES SECONDS; BYTES is a multiple of 16\n"), 2;
  const double limit_s = strtod(argv[2], NULL);
  uint8_t *buffer = calloc(bytes, 1);
  const uint8_t key[16] = {1, 2, 3};
  engine_start();
  const double begin_s = now_s();
  double elapsed_s = 0;
  uint64_t turns = 0;
  for (; elapsed_s < limit_s; elapsed_s = now_s() - begin_s)
    for (unsigned turn = 0; turn < TURNS; ++turn, ++turns) engine_encrypt(key, buffer, bytes / 16);
  printf("%f\n", (double)(turns * bytes) / elapsed_s / 1e6);
  free(buffer);
  return 0;
}
