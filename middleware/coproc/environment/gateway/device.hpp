// The device of this cell: a process on the host, or firmware in an emulated board.
#pragma once

#include <climits>
#include <string>
#include <vector>

#include "addresses.hpp"

namespace coproc {

#ifdef COPROC_MACHINE
#ifndef COPROC_EMULATOR
#define COPROC_EMULATOR "qemu-system-arm"
#endif
constexpr const char* kDevice = "qemu " COPROC_MACHINE;
constexpr int64_t kPieceBytesMax = 1440;  // a piece is a frame, because the firmware joins none
#else
constexpr const char* kDevice = "process";
constexpr int64_t kPieceBytesMax = 65472;
#endif

// With -icount, an instruction takes 2^6 ns of the board's time, so that a tick of a timer of 20
// MHz or more is shorter than an instruction. A tick of 10 MHz lasts less than two.
constexpr uint64_t kInstructionNs = 64;

// Returns the folder of this program, where the build left the device.
inline std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  const std::string text(path, size < 0 ? 0 : static_cast<size_t>(size));
  return text.substr(0, text.rfind('/'));
}

inline std::vector<std::string> device_command(const Address& address, bool count_instructions) {
  const std::string endpoint = text_of(address);
  const size_t colon = endpoint.rfind(':');
#ifdef COPROC_MACHINE
  const std::string network = "hostfwd=udp:" + endpoint + "-10.0.2.15:7000";
  std::vector<std::string> command = {
      COPROC_EMULATOR, "-M",      COPROC_MACHINE, "-nographic", "-monitor",
      "none",          "-serial", "none",         "-kernel",    own_folder() + "/firmware.elf"};
#ifdef COPROC_VIRTIO
  // A board without an Ethernet controller: the driver knows version 2 of virtio in the first slot.
  for (const char* word : {"-bios", "none", "-global", "virtio-mmio.force-legacy=false", "-device",
                           "virtio-net-device,netdev=network,bus=virtio-mmio-bus.0", "-netdev"})
    command.push_back(word);
  command.push_back("user,id=network," + network);
#else
  command.push_back("-nic");
  command.push_back("user," + network);
#endif
  if (count_instructions) {
    command.push_back("-icount");
    command.push_back("shift=6,sleep=off");
  }
  return command;
#else
  (void)count_instructions;
  return {own_folder() + "/device", endpoint.substr(0, colon), endpoint.substr(colon + 1)};
#endif
}

}  // namespace coproc
