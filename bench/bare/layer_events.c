/* Print the mean time (ns) of a tracepoint call, whose function a preloaded library defines. With
 * EMPTY_EVENT, the function is here and empty, for a uprobe. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef EMPTY_EVENT
__attribute__((noipa)) void ros_trace_rmw_publish(const void *node, const void *message,
                                                  int64_t time_ns) {
  (void)node, (void)message, (void)time_ns;
}
#else
__attribute__((weak)) void ros_trace_rmw_publish(const void *, const void *, int64_t);
#endif

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? atoll(argv[1]) : 1000000;
#ifndef EMPTY_EVENT
  if (!ros_trace_rmw_publish) {
    fputs("no library defines ros_trace_rmw_publish\n", stderr);
    return 1;
  }
#endif
  ros_trace_rmw_publish(argv, argv, 0); /* the first event creates the file */
  const int64_t begin_ns = now_ns();
  for (int64_t i = 0; i < count; i++) ros_trace_rmw_publish(argv, argv, i);
  printf("%.2f\n", (double)(now_ns() - begin_ns) / (double)count);
  return 0;
}
