/* A library that gives processes a clock with another rate, and logs what it did.
 *
 * Preload it into an agent and its nodes. CLOCK_MONOTONIC and CLOCK_BOOTTIME run from
 * SCALED_ORIGIN_NS on with the rate 1 + SCALED_PPM * 1e-6. The file SCALED_CHANGE has a time (ns, 8
 * bytes; 0: never) from which they have SCALED_CHANGE_PPM more and are SCALED_STEP_NS ahead. All
 * processes see a change of the file at once. Absolute sleeps end at the scaled time. Durations of
 * relative sleeps stay as they are: 50 ppm of a second are 50 us.
 * SCALED_LOG gets a line per process at its start, at reading READINGS and at its end. libfaketime
 * cannot do this: under it, CLOCK_MONOTONIC has the wall clock's time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef long long ns_t;

#define READINGS 50

static ns_t origin_ns, step_ns;
static const volatile ns_t never, *change_at_ns = &never;
static double rate, change;
static atomic_long readings, sleeps, waits;

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*real_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                             const struct timespec *);
static int (*real_semwait)(sem_t *, clockid_t, const struct timespec *);

static ns_t number_of(const char *name) {
  const char *text = getenv(name);
  return text ? atoll(text) : 0;
}

static double ppm_of(const char *name) {
  const char *text = getenv(name);
  return text ? atof(text) * 1e-6 : 0.0;
}

static void note(const char *what) {
  const char *path = getenv("SCALED_LOG");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  if (file < 0) return;
  char line[400];
  const int size = snprintf(line, sizeof line, "%s %d %s %.3f %.3f %ld %ld %ld\n", what, getpid(),
                            program_invocation_short_name, rate * 1e6, change * 1e6,
                            atomic_load(&readings), atomic_load(&sleeps), atomic_load(&waits));
  if (write(file, line, size) != size) _exit(99);
  close(file);
}

static void find(void) {
  if (real_gettime) return;
  real_nanosleep = dlsym(RTLD_NEXT, "clock_nanosleep");
  real_clockwait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  real_semwait = dlsym(RTLD_NEXT, "sem_clockwait");
  origin_ns = number_of("SCALED_ORIGIN_NS");
  const int file = getenv("SCALED_CHANGE") ? open(getenv("SCALED_CHANGE"), O_RDONLY) : -1;
  if (file >= 0) {
    void *shared = mmap(NULL, sizeof(ns_t), PROT_READ, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) change_at_ns = shared;
    close(file);
  }
  step_ns = number_of("SCALED_STEP_NS");
  rate = ppm_of("SCALED_PPM");
  change = ppm_of("SCALED_CHANGE_PPM");
  real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

__attribute__((constructor)) static void begin(void) {
  find();
  note("begin");
}

__attribute__((destructor)) static void end(void) { note("end"); }

static int is_scaled(clockid_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

static ns_t scaled(ns_t true_ns) {
  const ns_t change_ns = *change_at_ns;
  ns_t ahead_ns = (ns_t)((true_ns - origin_ns) * rate);
  if (change_ns && true_ns >= change_ns)
    ahead_ns += step_ns + (ns_t)((true_ns - change_ns) * change);
  return true_ns + ahead_ns;
}

/* Returns the true time at a scaled one. Two corrections leave less than 1 ns at 500 ppm. */
static ns_t unscaled(ns_t scaled_ns) {
  ns_t true_ns = scaled_ns - (scaled(scaled_ns) - scaled_ns);
  for (int again = 0; again < 2; again++) true_ns -= scaled(true_ns) - scaled_ns;
  return true_ns;
}

static ns_t ns_of(const struct timespec *time) {
  return time->tv_sec * 1000000000LL + time->tv_nsec;
}

static struct timespec time_of(ns_t ns) {
  if (ns < 0) ns = 0;
  return (struct timespec){ns / 1000000000, ns % 1000000000};
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  find();
  const int code = real_gettime(clock, time);
  if (code == 0 && is_scaled(clock)) {
    *time = time_of(scaled(ns_of(time)));
    if (atomic_fetch_add(&readings, 1) + 1 == READINGS) note("read");
  }
  return code;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                    struct timespec *remaining) {
  find();
  if (!is_scaled(clock) || !(flags & TIMER_ABSTIME))
    return real_nanosleep(clock, flags, time, remaining);
  const struct timespec until = time_of(unscaled(ns_of(time)));
  atomic_fetch_add(&sleeps, 1);
  return real_nanosleep(clock, flags, &until, remaining);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *time) {
  find();
  const struct timespec until = is_scaled(clock) ? time_of(unscaled(ns_of(time))) : *time;
  atomic_fetch_add(&waits, 1);
  return real_clockwait(condition, mutex, clock, &until);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *time) {
  find();
  const struct timespec until = is_scaled(clock) ? time_of(unscaled(ns_of(time))) : *time;
  atomic_fetch_add(&waits, 1);
  return real_semwait(semaphore, clock, &until);
}
