/* Recorder of the times at which a message passes the layers of an unmodified process.
 *
 * Each process writes one file into $WATTWIRE_LAYERS_DIR, which it maps into memory. Therefore, the
 * events survive a process that is killed, and nothing is left behind outside of this folder.
 */
#ifndef WATTWIRE_LAYERPROF_RECORDER_H
#define WATTWIRE_LAYERPROF_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define LAYERPROF_PUBLIC __attribute__((visibility("default")))
#define LAYERPROF_CALLERS_MAX 4

/* An event (32 bytes). The meaning of `a`, `b` and `c` depends on the point. */
struct layerprof_event {
  uint64_t time_ns; /* CLOCK_MONOTONIC, which all processes of a host share */
  uint64_t a;
  uint64_t b;
  uint32_t point;
  uint32_t c;
};

/* The addresses of a loaded library's code; of size 0 if the library is not loaded. */
struct layerprof_range {
  uintptr_t begin;
  size_t size;
};

enum layerprof_status {
  LAYERPROF_LIBRARY_ABSENT = 0,
  LAYERPROF_SYMBOL_ABSENT = 1,
  LAYERPROF_FOUND = 2,
  LAYERPROF_CALLERS_ABSENT = 3,
};

/* A function that a generated wrapper replaces. `library` and `callers` are patterns of file names;
 * without callers, all calls are recorded. */
struct layerprof_wrapper {
  const char *symbol;
  const char *library;
  const char *callers[LAYERPROF_CALLERS_MAX];
  struct layerprof_range ranges[LAYERPROF_CALLERS_MAX];
  void *own;
};

extern struct layerprof_wrapper layerprof_wrappers[];
extern const unsigned layerprof_wrapper_count;

static inline uint64_t layerprof_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool layerprof_is_caller(const struct layerprof_wrapper *wrapper, const void *code) {
  for (int i = 0; i < LAYERPROF_CALLERS_MAX && wrapper->callers[i]; i++)
    if ((uintptr_t)code - wrapper->ranges[i].begin < wrapper->ranges[i].size) return true;
  return wrapper->callers[0] == NULL;
}

/* Record an event of the calling thread. A full file is counted. */
void layerprof_record(uint32_t point, uint64_t time_ns, uint64_t a, uint64_t b, uint32_t c);

/* Append a line of text, which names an entity of the process. */
void layerprof_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return the function that a wrapper replaces, or NULL if the program is not linked to it. It is
 * called at the start of the process, because later another thread can hold the loader's lock. */
void *layerprof_next(unsigned wrapper);

/* Return the function that a wrapper replaces, from any loaded library. It ends the process if
 * there is none, because the call could not be answered. */
void *layerprof_bind(unsigned wrapper);

/* Find the libraries of the tables among those that are loaded now. */
void layerprof_look(void);

/* How many calls of a waiting function are in progress in this thread. */
extern __thread int layerprof_waits __attribute__((tls_model("initial-exec")));

#endif
