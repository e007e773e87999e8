// Lines to the harness on descriptor 3 and from the harness on standard input (C-05, C-08, C-09).
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "clock.hpp"
#include "json_text.hpp"

namespace wattwire {

class Dialogue {
 public:
  Dialogue() {
    if (fcntl(kLines, F_SETFD, FD_CLOEXEC) == 0) return;
    std::fputs("descriptor 3 is not open; in a shell, start the node with 3>&1\n", stderr);
    _exit(2);
  }

  void line(const std::string& keyword, const Object& fields = {}) {
    std::lock_guard<std::mutex> lock(line_mutex_);
    std::string text = keyword + " " + fields.text() + "\n";
    for (size_t done = 0; done < text.size();) {
      ssize_t wrote = ::write(kLines, text.data() + done, text.size() - done);
      if (wrote < 0 && errno != EINTR) return;  // the harness has ended: end of input follows
      if (wrote > 0) done += static_cast<size_t>(wrote);
    }
  }

  // Prints ERROR and ends the process immediately.
  [[noreturn]] void fail(int code, const Scalar& key, const std::string& reason) {
    line("ERROR", Object().add("code", code).add("key", key).add("reason", reason));
    _exit(code);
  }

  // Calls `end`, which does not return, if the process still runs `limit_ns` after STOP. Call this
  // before listen().
  void limit_end(int64_t limit_ns, std::function<void()> end) {
    end_limit_ns_ = limit_ns;
    end_ = std::move(end);
  }

  void listen() {
    std::thread([this] { read(); }).detach();
  }

  bool stopped() const { return stop_ns_.load(std::memory_order_relaxed) != 0; }
  int64_t stop_ns() const { return stop_ns_; }    // 0 before STOP
  int64_t start_ns() const { return start_ns_; }  // 0 before GO

  void wait_stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stopped(); });
  }
  void wait_go_or_stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stopped() || start_ns_ != 0; });
  }

 private:
  void read() {
    std::string rest;
    char chunk[4096];
    for (;;) {
      if (end_ && stopped() && !arrives_before(stop_ns_ + end_limit_ns_)) end_();
      ssize_t count = ::read(0, chunk, sizeof chunk);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) _exit(5);
      rest.append(chunk, static_cast<size_t>(count));
      for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
        handle(rest.substr(0, end));
    }
  }

  // Returns whether input, or its end, arrives before `deadline_ns`.
  static bool arrives_before(int64_t deadline_ns) {
    pollfd input{0, POLLIN, 0};
    for (int64_t left_ns; (left_ns = deadline_ns - now_ns()) > 0;)
      if (poll(&input, 1, static_cast<int>(std::min<int64_t>(left_ns / 1000000 + 1, INT_MAX))) > 0)
        return true;
    return false;
  }

  void handle(const std::string& text) {
    if (text.empty()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (text == "STOP") {
      if (!stopped()) stop_ns_ = now_ns();
    } else if (text.rfind("GO ", 0) == 0 && text.size() > 3 &&
               text.find_first_not_of("0123456789", 3) == std::string::npos) {
      int64_t start = std::strtoll(text.c_str() + 3, nullptr, 10);
      if (start < now_ns())
        fail(2, "GO",
             text + ": " + std::to_string(now_ns() - start) +
                 " ns in the past; allowed: the future");
      start_ns_ = start;
    } else {
      fail(2, text.substr(0, text.find(' ')),
           "found \"" + text + "\"; allowed: GO <start_ns>, STOP");
    }
    changed_.notify_all();
  }

  static constexpr int kLines = 3;
  std::mutex line_mutex_, mutex_;
  std::condition_variable changed_;
  std::atomic<int64_t> start_ns_{0}, stop_ns_{0};
  int64_t end_limit_ns_ = 0;
  std::function<void()> end_;
};

}  // namespace wattwire
