// A loop with the system calls of the agent's tick tier. `sampler OUT PERIOD_NS FILE…` prints a
// line and then runs until it is killed. At each absolute deadline it reads its own CPU time and
// the first number of each FILE. It appends records in the agent's format to OUT when its buffer is
// full.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000, FILES_MAX = 64, RECORDS_MAX = 16384 };

struct record {
  int64_t t_ns;
  uint32_t series;
  uint32_t read_ns;
  double value;
};

static struct record records[RECORDS_MAX];
static size_t count;

static int64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void put(int64_t t_ns, uint32_t series, double value) {
  uint32_t read_ns = (uint32_t)(now_ns(CLOCK_MONOTONIC) - t_ns);
  records[count++] = (struct record){t_ns, series, read_ns, value};
}

static double first_number(int fd) {
  char text[1024];
  ssize_t length = pread(fd, text, sizeof text - 1, 0);
  if (length <= 0) exit(1);
  text[length] = 0;
  const char* digits = strpbrk(text, "0123456789");
  return digits ? (double)strtoull(digits, NULL, 10) : 0;
}

int main(int argc, char** argv) {
  int files = argc - 3, fds[FILES_MAX];
  if (files < 1 || files > FILES_MAX) return 2;
  int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  int64_t period_ns = atoll(argv[2]);
  for (int k = 0; k < files; k++) {
    fds[k] = open(argv[3 + k], O_RDONLY);
    if (fds[k] < 0) return 1;
  }
  prctl(PR_SET_TIMERSLACK, 1);
  puts("ready");
  fflush(stdout);
  int64_t deadline_ns = now_ns(CLOCK_MONOTONIC);
  for (;; deadline_ns += period_ns) {
    struct timespec due = {deadline_ns / SECOND_NS, deadline_ns % SECOND_NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    int64_t t_ns = now_ns(CLOCK_MONOTONIC);
    put(t_ns, 0, (double)now_ns(CLOCK_PROCESS_CPUTIME_ID));
    for (int k = 0; k < files; k++) {
      t_ns = now_ns(CLOCK_MONOTONIC);
      put(t_ns, (uint32_t)k + 1, first_number(fds[k]));
    }
    if (count + (size_t)files + 1 > RECORDS_MAX) {
      if (write(out, records, count * sizeof *records) < 0) return 1;
      count = 0;
    }
  }
}
