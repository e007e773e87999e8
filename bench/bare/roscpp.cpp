// A bare roscpp request and reply over two topics: `pong MASTER` or `ping MASTER BYTES COUNT`.
//
// Pong prints the endpoint for ping and answers until it is killed; ping prints the median round
// trip in ns.
#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <std_msgs/UInt8MultiArray.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using std_msgs::UInt8MultiArray;
using Clock = std::chrono::steady_clock;
constexpr uint32_t kQueueSize = 1000;
constexpr double kTimeoutS = 2.0, kConnectedS = 20.0;

static void spin(double timeout_s) {
  ros::getGlobalCallbackQueue()->callAvailable(ros::WallDuration(timeout_s));
}

static double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static int pong(ros::NodeHandle& handle, const std::string& master) {
  ros::Publisher publisher = handle.advertise<UInt8MultiArray>("/bare/reply", kQueueSize);
  const boost::function<void(const UInt8MultiArray::ConstPtr&)> answer =
      [&](const UInt8MultiArray::ConstPtr& request) { publisher.publish(*request); };
  const auto subscriber = handle.subscribe<UInt8MultiArray>("/bare/request", kQueueSize, answer);
  std::printf("%s\n", master.c_str());
  std::fflush(stdout);
  for (;;) spin(1.0);
}

static int ping(ros::NodeHandle& handle, size_t length, uint64_t count) {
  ros::Publisher publisher = handle.advertise<UInt8MultiArray>("/bare/request", kQueueSize);
  UInt8MultiArray request;
  request.data.assign(length, 0);
  bool has_any = false, has_reply = false;
  const boost::function<void(const UInt8MultiArray::ConstPtr&)> take =
      [&](const UInt8MultiArray::ConstPtr& reply) {
        has_any = true;
        has_reply = reply->data == request.data;
      };
  const auto subscriber = handle.subscribe<UInt8MultiArray>("/bare/reply", kQueueSize, take);
  // Both directions are connected when the reply to a first request arrives.
  for (const auto begin = Clock::now(); !has_any; spin(0.1)) {
    if (seconds_since(begin) > kConnectedS)
      return std::fprintf(stderr, "no reply within %g s\n", kConnectedS), 1;
    publisher.publish(request);
  }
  std::vector<int64_t> times;
  for (uint64_t number = 1; number <= count; ++number) {
    std::memcpy(request.data.data(), &number, sizeof number);
    has_reply = false;
    const auto begin = Clock::now();
    publisher.publish(request);
    while (!has_reply) {
      spin(kTimeoutS);
      if (!has_reply && seconds_since(begin) > kTimeoutS)
        return std::fprintf(stderr, "no reply to call %lu\n", number), 1;
    }
    times.push_back(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%ld\n", times[count / 2]);
  return 0;
}

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if ((role != "pong" || argc < 3) && (role != "ping" || argc != 5))
    return std::fprintf(stderr, "usage: roscpp pong MASTER | ping MASTER BYTES COUNT\n"), 2;
  setenv("ROS_MASTER_URI", ("http://" + std::string(argv[2]) + "/").c_str(), 1);
  setenv("ROS_IP", "127.0.0.1", 1);
  ros::init(ros::M_string{}, "bare_" + std::to_string(getpid()),
            ros::init_options::NoSigintHandler);
  ros::NodeHandle handle;
  if (role == "pong") return pong(handle, argv[2]);
  return ping(handle, std::strtoul(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10));
}
