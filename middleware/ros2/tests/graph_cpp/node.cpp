// Plain rclcpp nodes like those of the folders `graph` and `plain_graph`.
//
// Usage: node talker FILE [COUNT] | node relay FILE | node listener FILE. The talker publishes
// COUNT messages at 50 Hz or, without COUNT, until its input ends. The others end after a silence.
// Each one prints its count, and writes it or what it has sent or received to FILE.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/image.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using sensor_msgs::msg::Image;
using std::chrono::milliseconds;

constexpr int64_t kSecondNs = 1000000000;
constexpr int64_t kWorkNs = 3000000;
constexpr int64_t kRelaySilenceNs = 2 * kSecondNs;
constexpr int64_t kListenerSilenceNs = 3 * kSecondNs;
constexpr size_t kDepth = 10;

template <typename Clock>
int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

int64_t monotonic_ns() { return now_ns<std::chrono::steady_clock>(); }
int64_t wall_ns() { return now_ns<std::chrono::system_clock>(); }

int64_t stamp_ns(const Image& message) {
  return message.header.stamp.sec * kSecondNs + message.header.stamp.nanosec;
}

// The stamp of a message, and a time of it: the talker's CLOCK_MONOTONIC, the listener's wall
// clock.
using Times = std::vector<std::pair<int64_t, int64_t>>;

void write(const char* path, const Times& times) {
  std::ofstream file(path);
  file << "[";
  for (size_t i = 0; i < times.size(); i++) {
    file << (i ? ", " : "") << "[" << times[i].first << ", " << times[i].second << "]";
  }
  file << "]";
}

// Returns a timer that ends the process's spin when `last_ns` is `silence_ns` ago.
auto end_after_silence(rclcpp::Node& node, const int64_t& last_ns, int64_t silence_ns) {
  return node.create_wall_timer(milliseconds(500), [&last_ns, silence_ns] {
    if (last_ns != 0 && monotonic_ns() > last_ns + silence_ns) rclcpp::shutdown();
  });
}

void talk(const char* path, size_t count) {
  auto node = std::make_shared<rclcpp::Node>("talker");
  auto publisher = node->create_publisher<Image>("chatter", kDepth);
  Times sent;
  auto timer = node->create_wall_timer(milliseconds(20), [&] {
    if (publisher->get_subscription_count() == 0) return;
    if (count != 0 && sent.size() == count) {
      rclcpp::shutdown();
      return;
    }
    Image message;
    const int64_t monotonic = monotonic_ns(), stamp = wall_ns();
    message.header.stamp.sec = static_cast<int32_t>(stamp / kSecondNs);
    message.header.stamp.nanosec = static_cast<uint32_t>(stamp % kSecondNs);
    sent.emplace_back(stamp, monotonic);
    publisher->publish(message);
  });
  if (count == 0) {
    std::thread([] {
      while (std::cin.get() != EOF) continue;
      rclcpp::shutdown();
    }).detach();
  }
  rclcpp::spin(node);
  write(path, sent);
  std::printf("talker sent %zu\n", sent.size());
}

void relay(const char* path) {
  auto node = std::make_shared<rclcpp::Node>("relay");
  auto publisher = node->create_publisher<Image>("relayed", kDepth);
  int64_t last_ns = 0;
  size_t passed = 0;
  auto subscription =
      node->create_subscription<Image>("chatter", kDepth, [&](const Image& message) {
        const int64_t end_ns = monotonic_ns() + kWorkNs;
        while (monotonic_ns() < end_ns) continue;
        passed++;
        last_ns = monotonic_ns();
        publisher->publish(message);
      });
  auto timer = end_after_silence(*node, last_ns, kRelaySilenceNs);
  rclcpp::spin(node);
  std::ofstream(path) << "{\"count\": " << passed << "}";
  std::printf("relay passed %zu\n", passed);
}

void listen(const char* path) {
  auto node = std::make_shared<rclcpp::Node>("listener");
  int64_t last_ns = 0;
  Times received;
  auto subscription =
      node->create_subscription<Image>("relayed", kDepth, [&](const Image& message) {
        received.emplace_back(stamp_ns(message), wall_ns());
        last_ns = monotonic_ns();
      });
  auto timer = end_after_silence(*node, last_ns, kListenerSilenceNs);
  rclcpp::spin(node);
  write(path, received);
  std::printf("listener ages_ns");
  for (const auto& [stamp, time] : received) std::printf(" %jd", intmax_t(time - stamp));
  std::printf("\n");
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  rclcpp::init(1, argv);
  const std::string role = argv[1];
  if (role == "talker") {
    talk(argv[2], argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0);
  } else if (role == "relay") {
    relay(argv[2]);
  } else {
    listen(argv[2]);
  }
}
