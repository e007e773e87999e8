// What the bare programs share: the clock, and the median of their times.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int by_size(const void* one, const void* other) {
  int64_t a = *(const int64_t*)one, b = *(const int64_t*)other;
  return (a > b) - (a < b);
}

static void print_median(int64_t* times_ns, size_t count) {
  qsort(times_ns, count, sizeof *times_ns, by_size);
  printf("%lld\n", (long long)times_ns[count / 2]);
}
