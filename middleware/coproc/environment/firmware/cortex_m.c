// The start of a board with a Cortex-M: vectors, memory and timer.
#include "device/answer.h"
#include "firmware.h"

#ifndef CLOCK_HZ
#error "CLOCK_HZ is the frequency of SysTick on this board"
#endif

// SysTick counts the processor's clock down from 2^24 - 1 (Armv7-M Architecture, B3.3).
static volatile uint32_t *const SYST_CSR = (uint32_t *)0xE000E010;
static volatile uint32_t *const SYST_RVR = (uint32_t *)0xE000E014;
static volatile uint32_t *const SYST_CVR = (uint32_t *)0xE000E018;
static const uint32_t SYST_MAX = 0xFFFFFF, SYST_ENABLE = 1, SYST_PROCESSOR_CLOCK = 4;

// Counts up modulo 2^32, as long as it is read at least once per 2^24 ticks.
uint32_t timer_ticks(void) {
  static uint32_t total, last;
  const uint32_t now = SYST_MAX - *SYST_CVR;
  total += (now - last) & SYST_MAX;
  last = now;
  return total;
}

uint32_t timer_ticks_per_second(void) { return CLOCK_HZ; }

extern uint32_t __bss_start__[], __bss_end__[];  // by the default script of the linker

// Not part of .bss, which reset() clears while it runs on this stack.
__attribute__((section(".noinit"))) static uint64_t stack[2048];

void reset(void) {
  for (volatile uint32_t *word = __bss_start__; word < __bss_end__; ++word) *word = 0;
  *SYST_RVR = SYST_MAX;
  *SYST_CVR = 0;
  *SYST_CSR = SYST_ENABLE | SYST_PROCESSOR_CLOCK;
  firmware_run();
}

// A fault stops the firmware; the gateway's calls then time out.
static void halt(void) {
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack + sizeof stack / sizeof stack[0],
    (void *)reset,
    (void *)halt,
    (void *)halt,
    (void *)halt,
    (void *)halt,
    (void *)halt,
    (void *)halt};
