#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER_VARIABLE "WATTWIRE_LAYERS_DIR"
#define SIZE_VARIABLE "WATTWIRE_LAYERS_MIB"
#define MIB ((size_t)1 << 20)
#define SIZE_MIB 256
#define WRAPPERS_MAX 256
#define NOTES_BYTES MIB
#define CHUNK_EVENTS 511
#define CHUNKS_RESERVED 64
#define INTERRUPTIONS_MAX 100
#define EVENTS_UNTIL_RETRY 1024
#define FORK_WAIT_NS 100000000
#define FIRST_CHUNK ((off_t)4096 + (off_t)NOTES_BYTES)
#define OBJECTS_MAX 1024

/* The first page of a file. wattwire/run/layers/recordings.py reads it. */
struct header {
  char magic[8];
  uint32_t pid;
  uint32_t wrapper_count;
  uint64_t chunk_count;
  uint64_t chunks_used;
  _Atomic uint64_t lost;
  _Atomic uint64_t notes_used; /* can exceed NOTES_BYTES */
  uint64_t loss_cause;         /* errno of the first chunk without space; 0: the file was full */
  uint64_t reserved;
  uint8_t statuses[WRAPPERS_MAX];
  char arguments[2048]; /* the command line of the process */
};

/* Events of one thread (16 KiB). A thread takes a new chunk when its chunk is full. */
struct chunk {
  uint32_t thread;
  _Atomic uint32_t used;
  uint8_t reserved[24];
  struct layerprof_event events[CHUNK_EVENTS];
};

_Static_assert(sizeof(struct layerprof_event) == 32, "the reader expects 32 bytes an event");
_Static_assert(sizeof(struct header) <= 4096, "the header is one page");
_Static_assert(sizeof(struct chunk) == 16384, "the reader expects chunks of 16 KiB");

enum state { CLOSED, OPENING, OPEN, OFF };

static _Atomic int state = CLOSED;
static struct header *header;
static char *notes;
static struct chunk *chunks;
static char file_path[PATH_MAX];
static _Atomic pid_t owner; /* the process that opened the file */
static pthread_mutex_t chunk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t look_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t chunks_reserved;  /* chunks with space on the disk; under chunk_lock */
static _Atomic uint64_t retry_at; /* lost events until space is looked for again */

#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))
static OF_THREAD struct chunk *current;
static OF_THREAD bool is_inside, holds_look_lock;
__thread int layerprof_waits __attribute__((tls_model("initial-exec")));

struct entry {
  int saved_errno, cancel_state;
};

/* Begin the recorder's own work. Return false within such work, because a function that it calls
 * can be one that a table replaces. The thread is not cancelled in it, because it holds locks. */
static bool enter(struct entry *entry) {
  if (is_inside) return false;
  is_inside = true;
  entry->saved_errno = errno;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &entry->cancel_state);
  return true;
}

static void leave(const struct entry *entry) {
  pthread_setcancelstate(entry->cancel_state, NULL);
  errno = entry->saved_errno;
  is_inside = false;
}

/* Leave a link that names the error. A link needs neither a file descriptor nor a block of the
 * disk, whose lack is the usual reason. wattwire/run/layers/recordings.py reads it. */
static void refuse(int file) {
  char mark[PATH_MAX + 16], number[16];
  int error = errno;
  fprintf(stderr, "wattwire: layers are not recorded: %s: %s\n", file_path, strerror(error));
  if (file >= 0) {
    close(file);
    unlink(file_path);
  }
  snprintf(mark, sizeof mark, "%s.refused", file_path);
  snprintf(number, sizeof number, "%d", error);
  if (symlink(number, mark) != 0) perror("wattwire: layers are not recorded");
  atomic_store(&state, OFF);
}

/* Forget the file of the parent in a child, with locks that other threads of the parent held. */
static void forget(void) {
  pthread_mutex_init(&chunk_lock, NULL);
  pthread_mutex_init(&look_lock, NULL);
  header = NULL;
  current = NULL;
}

/* Fork when no thread looks for libraries, because the child would wait for ever for the loader's
 * list of them. The time is limited, because the looking thread can wait for a thread that loads a
 * library and forks. */
static void before_fork(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += FORK_WAIT_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  holds_look_lock = pthread_mutex_timedlock(&look_lock, &until) == 0;
}

static void after_fork_in_parent(void) {
  if (holds_look_lock) pthread_mutex_unlock(&look_lock);
}

static void after_fork_in_child(void) {
  if (header) munmap(header, 4096 + NOTES_BYTES + header->chunk_count * sizeof(struct chunk));
  forget();
  atomic_store(&state, CLOSED);
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void read_arguments(char *text, size_t size) {
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t length = read(file, text, size - 1);
  close(file);
  text[length > 0 ? length : 0] = 0;
}

/* Reserve space on the disk. A store to a page without space would end the process (SIGBUS).
 * Return whether there is space, or whether the file system cannot tell; else, errno is set. */
static bool reserve(int file, off_t offset, size_t size) {
  for (int attempt = 0; attempt < INTERRUPTIONS_MAX; attempt++) {
    if (fallocate(file, 0, offset, (off_t)size) == 0) return true;
    if (errno != EINTR) return errno == EOPNOTSUPP || errno == ENOSYS;
  }
  return false;
}

/* A process that executes another program keeps its number, so a name can be taken. */
static int create(const char *folder, char *path, size_t size) {
  for (int attempt = 0; attempt < 1000; attempt++) {
    snprintf(path, size, "%s/%d-%d.events", folder, (int)getpid(), attempt);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

static void open_file(void) {
  const char *folder = getenv(FOLDER_VARIABLE), *mib = getenv(SIZE_VARIABLE);
  if (!folder) {
    atomic_store(&state, OFF);
    return;
  }
  size_t size = (mib && atol(mib) > 0 ? (size_t)atol(mib) : SIZE_MIB) * MIB;
  int file = create(folder, file_path, sizeof file_path);
  size_t count = size / sizeof(struct chunk);
  size = 4096 + NOTES_BYTES + count * sizeof(struct chunk);
  if (file < 0 || ftruncate(file, (off_t)size) != 0 || !reserve(file, 0, FIRST_CHUNK)) {
    refuse(file);
    return;
  }
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    refuse(file);
    return;
  }
  close(file);
  struct header *new_header = memory;
  new_header->pid = (uint32_t)getpid();
  new_header->wrapper_count = layerprof_wrapper_count;
  new_header->chunk_count = count;
  read_arguments(new_header->arguments, sizeof new_header->arguments);
  notes = (char *)memory + 4096;
  chunks = (struct chunk *)((char *)memory + 4096 + NOTES_BYTES);
  header = new_header;
  chunks_reserved = 0;
  atomic_store(&retry_at, 0);
  atomic_store(&owner, getpid());
  memcpy(new_header->magic, "WLAYERS2", 8);
  atomic_store(&state, OPEN);
}

/* Return whether the process has a file, which it opens at its first event. A child of _Fork() or
 * clone() has the mapping of its parent, and no handler ran. It keeps this mapping, because a child
 * that shares the memory of its parent would end it there. */
static bool is_open(void) {
  int now = atomic_load_explicit(&state, memory_order_acquire);
  if (now == OFF) return false;
  if (now == OPEN && atomic_load(&owner) == getpid()) return true;
  if (now != OPENING && atomic_compare_exchange_strong(&state, &now, OPENING)) {
    if (now == OPEN) forget();
    open_file();
  } else {
    while (atomic_load(&state) == OPENING) sched_yield();
  }
  return atomic_load(&state) == OPEN;
}

/* Reserve the space of the next chunks. The file is opened again, because a program may have closed
 * all files and used their numbers for its own. */
static bool reserve_chunks(uint64_t index) {
  int file = open(file_path, O_RDWR | O_CLOEXEC);
  bool is_reserved = file >= 0 && reserve(file, FIRST_CHUNK + (off_t)(index * sizeof *chunks),
                                          CHUNKS_RESERVED * sizeof *chunks);
  if (is_reserved)
    chunks_reserved = index + CHUNKS_RESERVED;
  else if (!header->loss_cause)
    header->loss_cause = (uint64_t)errno;
  if (file >= 0) close(file);
  return is_reserved;
}

/* Return a chunk with space on the disk, or NULL. A lack can end (too many open files), so space is
 * looked for again after some lost events. */
static struct chunk *unused_chunk(void) {
  struct chunk *chunk = NULL;
  if (atomic_load(&header->lost) >= atomic_load(&retry_at)) {
    pthread_mutex_lock(&chunk_lock);
    uint64_t index = header->chunks_used;
    if (index < header->chunk_count && (index < chunks_reserved || reserve_chunks(index))) {
      chunk = &chunks[index];
      header->chunks_used = index + 1;
    } else {
      atomic_store(&retry_at, atomic_load(&header->lost) + EVENTS_UNTIL_RETRY);
    }
    pthread_mutex_unlock(&chunk_lock);
  }
  if (!chunk) atomic_fetch_add(&header->lost, 1);
  return chunk;
}

/* Give the thread a new chunk. Return whether there was one. */
__attribute__((noinline)) static bool next_chunk(void) {
  struct entry entry;
  if (!enter(&entry)) return false;
  struct chunk *chunk = is_open() ? unused_chunk() : NULL;
  if (chunk) {
    /* The file has the events of a full chunk, so the process need not keep its pages. */
    if (current) madvise(current, sizeof *current, MADV_DONTNEED);
    chunk->thread = (uint32_t)syscall(SYS_gettid);
    current = chunk;
  }
  leave(&entry);
  return chunk != NULL;
}

void layerprof_record(uint32_t point, uint64_t time_ns, uint64_t a, uint64_t b, uint32_t c) {
  struct chunk *chunk = current;
  uint32_t used = chunk ? atomic_load_explicit(&chunk->used, memory_order_relaxed) : CHUNK_EVENTS;
  if (__builtin_expect(used == CHUNK_EVENTS, 0)) {
    if (!next_chunk()) return;
    chunk = current;
    used = 0;
  }
  chunk->events[used] = (struct layerprof_event){time_ns, a, b, point, c};
  atomic_store_explicit(&chunk->used, used + 1, memory_order_release);
}

void layerprof_note(const char *format, ...) {
  char line[1024];
  va_list arguments;
  struct entry entry;
  if (!enter(&entry)) return;
  if (!is_open()) {
    leave(&entry);
    return;
  }
  int begin = snprintf(line, sizeof line, "%llu ", (unsigned long long)layerprof_now_ns());
  va_start(arguments, format);
  int length = begin + vsnprintf(line + begin, sizeof line - (size_t)begin - 1, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  uint64_t offset = atomic_fetch_add(&header->notes_used, (uint64_t)length);
  if (offset + (uint64_t)length <= NOTES_BYTES) memcpy(notes + offset, line, (size_t)length);
  leave(&entry);
}

/* -- libraries ------------------------------------------------------------------------------- */

struct object {
  char path[PATH_MAX];
  struct layerprof_range code;
};

struct search {
  const char *pattern; /* NULL: any library */
  struct object *objects;
  unsigned count, room;
};

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  struct search *search = argument;
  if (!info->dlpi_name || !*info->dlpi_name || search->count == search->room) return 0;
  if (search->pattern && fnmatch(search->pattern, file_name(info->dlpi_name), 0) != 0) return 0;
  struct object *object = &search->objects[search->count];
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
    uintptr_t address = info->dlpi_addr + segment->p_vaddr;
    if (address < begin) begin = address;
    if (address + segment->p_memsz > end) end = address + segment->p_memsz;
  }
  if (end == 0) return 0;
  snprintf(object->path, sizeof object->path, "%s", info->dlpi_name);
  object->code = (struct layerprof_range){begin, end - begin};
  search->count++;
  return 0;
}

/* Return the symbol of the first object that defines it, other than the wrapper itself. Python
 * loads its extensions with RTLD_LOCAL, so RTLD_NEXT misses their libraries. */
static void *symbol_in(const struct search *found, const char *name, const void *own) {
  for (unsigned i = 0; i < found->count; i++) {
    void *handle = dlopen(found->objects[i].path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void *symbol = dlsym(handle, name);
    dlclose(handle);
    if (symbol && symbol != own) return symbol;
  }
  return NULL;
}

static void *search_symbol(const char *pattern, const char *name, const void *own,
                           bool *is_loaded) {
  struct search search = {pattern, calloc(OBJECTS_MAX, sizeof(struct object)), 0, OBJECTS_MAX};
  if (!search.objects) return NULL;
  dl_iterate_phdr(add_object, &search);
  void *symbol = symbol_in(&search, name, own);
  if (is_loaded) *is_loaded = search.count > 0;
  free(search.objects);
  return symbol;
}

/* Return the next definition of a symbol, as a program is linked to it. Before glibc 2.36,
 * RTLD_NEXT gives the oldest version of a symbol, and the oldest pthread_cond_wait() expects
 * another condition variable. A handle of the same library gives the default version. */
static void *next_symbol(const char *name, const void *own) {
  void *symbol = dlsym(RTLD_NEXT, name);
  Dl_info library;
  if (!symbol || !dladdr(symbol, &library) || !library.dli_fname) return symbol;
  void *handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return symbol;
  void *current = dlsym(handle, name);
  dlclose(handle);
  return current && current != own ? current : symbol;
}

void *layerprof_next(unsigned index) {
  void *symbol = next_symbol(layerprof_wrappers[index].symbol, layerprof_wrappers[index].own);
  if (!symbol) dlerror(); /* the program's own dlerror() must not name this symbol */
  return symbol;
}

void *layerprof_bind(unsigned index) {
  const struct layerprof_wrapper *wrapper = &layerprof_wrappers[index];
  struct entry entry;
  bool is_outermost = enter(&entry);
  void *symbol = layerprof_next(index);
  if (!symbol) symbol = search_symbol(wrapper->library, wrapper->symbol, wrapper->own, NULL);
  if (!symbol) symbol = search_symbol(NULL, wrapper->symbol, wrapper->own, NULL);
  if (is_outermost) leave(&entry);
  if (symbol) return symbol;
  fprintf(stderr, "wattwire: no loaded library defines %s, which a table of layers replaces\n",
          wrapper->symbol);
  abort();
}

static uint8_t status_of(const struct layerprof_wrapper *wrapper) {
  bool is_loaded = false, has_caller = wrapper->callers[0] == NULL;
  if (!search_symbol(wrapper->library, wrapper->symbol, wrapper->own, &is_loaded))
    return is_loaded ? LAYERPROF_SYMBOL_ABSENT : LAYERPROF_LIBRARY_ABSENT;
  for (int i = 0; i < LAYERPROF_CALLERS_MAX && wrapper->callers[i]; i++)
    has_caller |= wrapper->ranges[i].size > 0;
  return has_caller ? LAYERPROF_FOUND : LAYERPROF_CALLERS_ABSENT;
}

static void look(void) {
  pthread_mutex_lock(&look_lock);
  for (unsigned i = 0; i < layerprof_wrapper_count && i < WRAPPERS_MAX; i++) {
    struct layerprof_wrapper *wrapper = &layerprof_wrappers[i];
    for (int j = 0; j < LAYERPROF_CALLERS_MAX && wrapper->callers[j]; j++) {
      struct object object;
      struct search search = {wrapper->callers[j], &object, 0, 1};
      if (wrapper->ranges[j].size) continue;
      dl_iterate_phdr(add_object, &search);
      if (search.count == 0) continue;
      wrapper->ranges[j].begin = object.code.begin;
      wrapper->ranges[j].size = object.code.size;
    }
    if (header->statuses[i] == LAYERPROF_FOUND) continue;
    header->statuses[i] = status_of(wrapper);
  }
  pthread_mutex_unlock(&look_lock);
}

void layerprof_look(void) {
  struct entry entry;
  if (!enter(&entry)) return;
  if (is_open()) look();
  leave(&entry);
}
