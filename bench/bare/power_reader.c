// A loop like that of PowerJoular. `power_reader OUT PERIOD_NS PID FILE…` prints a line and then
// runs until it is killed. At each absolute deadline it reads the energy counters FILE and the CPU
// time of the machine and of PID, each from a file that it opens anew, and writes a line to OUT.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000, STATES = 8, IDLE = 3, IO_WAIT = 4, USER_FIELD = 12 };

static char text[4096];

static const char* content(const char* path) {
  int fd = open(path, O_RDONLY);
  ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (length < 0) exit(1);
  close(fd);
  text[length] = 0;
  return text;
}

static double energy_j(int files, char** paths) {
  double sum_uj = 0;
  for (int k = 0; k < files; k++) sum_uj += strtod(content(paths[k]), NULL);
  return sum_uj / 1e6;
}

static double busy_ticks(void) {
  char* at = (char*)content("/proc/stat") + strlen("cpu");
  double busy = 0;
  for (int state = 0; state < STATES; state++) {
    double ticks = strtod(at, &at);
    if (state != IDLE && state != IO_WAIT) busy += ticks;
  }
  return busy;
}

static double process_ticks(const char* path) {
  char* at = strrchr(content(path), ')') + strlen(") S");
  double user = 0, system = 0;
  for (int field = 1; field < USER_FIELD; field++) user = strtod(at, &at);
  system = strtod(at, &at);
  return user + system;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  char of_process[64];
  snprintf(of_process, sizeof of_process, "/proc/%s/stat", argv[3]);
  int64_t period_ns = atoll(argv[2]);
  FILE* out = fopen(argv[1], "w");
  if (!out || period_ns <= 0) return 1;
  puts("ready");
  fflush(stdout);
  struct timespec due;
  clock_gettime(CLOCK_MONOTONIC, &due);
  double before_j = energy_j(argc - 4, argv + 4), busy = busy_ticks();
  double of_pid = process_ticks(of_process);
  for (;;) {
    int64_t next_ns = due.tv_nsec + period_ns;
    due = (struct timespec){due.tv_sec + next_ns / SECOND_NS, next_ns % SECOND_NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    double now_j = energy_j(argc - 4, argv + 4), now_busy = busy_ticks();
    double now_of_pid = process_ticks(of_process);
    double share = now_busy > busy ? (now_of_pid - of_pid) / (now_busy - busy) : 0;
    double watts = (now_j - before_j) * SECOND_NS / (double)period_ns;
    fprintf(out, "%.3f W, %.3f W by the process (%.1f %%)\n", watts, watts * share, 100 * share);
    fflush(out);
    before_j = now_j, busy = now_busy, of_pid = now_of_pid;
  }
}
