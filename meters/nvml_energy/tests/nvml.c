/* A library with the functions of NVML that the meter calls. Macros choose what it answers. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 2
#endif
#ifndef ENERGY
#define ENERGY 0
#endif

static int started;

int nvmlInit_v2(void) {
  started += INIT == 0;
  return INIT;
}

int nvmlShutdown(void) { return --started; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
  *count = COUNT;
  return started ? 0 : 1;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
  *device = (void *)(unsigned long)(index + 1);
  return 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int length) {
  snprintf(name, length, "Invented GPU %lu", (unsigned long)device);
  return 0;
}

#ifndef WITHOUT_COUNTER
/* The first GPU's energy (mJ) is in a file, without which it is lost. The second one has none. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *energy) {
  FILE *file;
  int read;

  if (device != (void *)1) return 3;
  file = fopen(getenv("INVENTED_ENERGY"), "r");
  if (!file) return 15;
  read = fscanf(file, "%llu", energy);
  fclose(file);
  return read == 1 ? ENERGY : 999;
}
#endif
