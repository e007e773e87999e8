// What roscpp and the master report about peers that did not connect.
#pragma once

#include <ros/console.h>
#include <ros/master.h>

#include <mutex>
#include <stdexcept>
#include <string>

// A connection failed because the peer's type differs, which no retry changes.
struct TypeMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Keeps roscpp's last warning or error, and the last on the types of a connection.
class Reports : public ros::console::LogAppender {
 public:
  Reports() { ros::console::register_appender(this); }
  ~Reports() override { ros::console::deregister_appender(this); }
  void log(ros::console::Level level, const char* text, const char*, const char*, int) override {
    if (level < ros::console::levels::Warn) return;
    std::lock_guard<std::mutex> lock(mutex_);
    last_ = text;
    if (last_.find("md5sum") != std::string::npos ||
        last_.find("types do not match") != std::string::npos)
      mismatch_ = last_;
  }
  std::string last() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }
  std::string mismatch() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return mismatch_;
  }

 private:
  mutable std::mutex mutex_;
  std::string last_, mismatch_;
};

// Returns a sentence on peers that did not connect.
inline std::string explain(const std::string& report, const std::string& topic,
                           const std::string& type, const std::string& prefix) {
  const std::string uri = ros::master::getURI();
  if (!ros::master::check()) return "The master at " + uri + " no longer answers.";
  if (!report.empty()) return "roscpp reports: " + report;
  ros::master::V_TopicInfo topics;
  ros::master::getTopics(topics);
  for (const auto& known : topics)
    if (known.name == topic && known.datatype != type)
      return topic + " has the type " + known.datatype + " at the master; this cell uses " + type +
             ".";
  ros::V_string nodes;
  ros::master::getNodes(nodes);
  for (const auto& node : nodes)
    if (node.compare(0, prefix.size() + 1, prefix + "_") != 0)
      return "The master at " + uri + " has nodes that are not of this run, such as " + node +
             "; is it the master of run " + prefix.substr(sizeof("/wattwire_") - 1) + "?";
  return "The master at " + uri + " knows no other node.";
}
