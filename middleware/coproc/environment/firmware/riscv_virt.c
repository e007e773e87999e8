// The start of QEMU's board virt with one RISC-V hart in machine mode: memory and timer.
#include "device/answer.h"
#include "firmware.h"

// The lower half of mtime (RISC-V ACLINT, chapter 2), which the board counts at 10 MHz.
static volatile uint32_t *const MTIME = (uint32_t *)0x0200BFF8;

uint32_t timer_ticks(void) { return *MTIME; }

uint32_t timer_ticks_per_second(void) { return 10000000; }

__attribute__((aligned(16), used)) static uint8_t stack[16384];

// A trap stops the firmware; the gateway's calls then time out.
__attribute__((aligned(4), used)) static void halt(void) {
  for (;;) {
  }
}

// Clears the memory between the symbols of the linker's default script. The linker addresses small
// data by gp, so gp is set without its help.
__attribute__((naked, section(".start"))) void reset(void) {
  __asm__ volatile(
      ".option push\n"
      ".option norelax\n"
      "la gp, __global_pointer$\n"
      ".option pop\n"
      "la t0, halt\n"
      "csrw mtvec, t0\n"
      "la t0, __bss_start\n"
      "la t1, __BSS_END__\n"
      "1: sb zero, 0(t0)\n"
      "addi t0, t0, 1\n"
      "bltu t0, t1, 1b\n"
      "la sp, stack + %0\n"
      "j firmware_run" ::"i"(sizeof stack));
}
