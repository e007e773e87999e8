// The process of a device: it starts with the node and ends with it, also by a signal.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "wattwire/kit.hpp"

namespace coproc {

class DeviceProcess {
 public:
  explicit DeviceProcess(const std::vector<std::string>& command) : name_(command[0]) {
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw wattwire::MiddlewareFailed("fork: " + std::string(strerror(errno)));
    if (pid_ == 0) {
      // The kernel ends the device when this thread, the node's main thread, ends.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
      dup2(open("/dev/null", O_RDONLY), 0);  // only the node reads the harness's lines
      execvp(words[0], words.data());
      perror(words[0]);
      _exit(127);
    }
    ended_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  ~DeviceProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ended_);
  }
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;

  // Waits. Throws MiddlewareFailed if the device has ended.
  void watch(int64_t timeout_ns) {
    pollfd end = {ended_, POLLIN, 0};
    const timespec limit = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (ppoll(&end, 1, &limit, nullptr) <= 0) return;
    siginfo_t state = {};
    waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
    throw wattwire::MiddlewareFailed(
        "the device " + name_ + " ended" +
        (state.si_code == CLD_EXITED ? " with exit code " : " by signal ") +
        std::to_string(state.si_status) + "; the node's log has its output");
  }

 private:
  const std::string name_;
  pid_t pid_ = -1;
  int ended_ = -1;
};

}  // namespace coproc
