// A node at the run's master: registration, publishers, subscribers, READY, and the end.
#pragma once

#include <ros/callback_queue.h>
#include <ros/master.h>
#include <ros/ros.h>
#include <std_msgs/String.h>
#include <std_msgs/UInt8MultiArray.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "connections.hpp"
#include "reports.hpp"
#include "wattwire/kit.hpp"

using wattwire::Bytes;
using wattwire::Kit;
using wattwire::MiddlewareFailed;

inline Bytes view(const std_msgs::String& message) { return Bytes(message.data); }
inline Bytes view(const std_msgs::UInt8MultiArray& message) {
  return {message.data.data(), message.data.size()};
}
inline void assign(std_msgs::String& message, Bytes data) { message.data = data.str(); }
inline void assign(std_msgs::UInt8MultiArray& message, Bytes data) {
  message.data.assign(data.data, data.data + data.size);
}

// Configures roscpp from the spec alone (C-01), so variables of a sourced ROS have no effect.
inline void configure(const Kit& kit, const std::string& uri) {
  for (const char* name : {"ROS_NAMESPACE", "ROS_HOSTNAME", "ROS_IPV6", "ROS_ROOT",
                           "ROSCONSOLE_CONFIG_FILE", "ROSCONSOLE_STDOUT_LINE_BUFFERED"})
    unsetenv(name);
  const std::string folder = std::filesystem::absolute(kit.out()).string();
  setenv("ROS_MASTER_URI", uri.c_str(), 1);
  setenv("ROS_IP", kit.string("host.address").c_str(), 1);
  setenv("ROS_HOME", folder.c_str(), 1);
  setenv("ROS_LOG_DIR", folder.c_str(), 1);
}

// Returns the master's URI from the first endpoint.
inline std::string master_uri(const Kit& kit) {
  const auto endpoints = kit.strings("peers.endpoints");
  const std::string endpoint = endpoints.empty() ? "" : endpoints.front();
  const size_t colon = endpoint.rfind(':');
  const std::string port = colon == std::string::npos ? "" : endpoint.substr(colon + 1);
  const bool decimal = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  if (colon == 0 || !decimal || port.size() > 5 || std::stol(port) > 65535)
    throw wattwire::BadSpec("peers.endpoints", endpoint,
                            "the master as HOST:PORT, first in the list");
  return "http://" + endpoint + "/";
}

// A registered node. The constructor throws MiddlewareFailed if no master answers.
template <class Message>
class Session {
 public:
  explicit Session(Kit& kit)
      : kit_(kit), begin_ns_(wattwire::now_ns()), prefix_("/wattwire_" + kit.string("run")) {
    const std::string uri = master_uri(kit);
    configure(kit, uri);
    ros::init(ros::M_string{}, prefix_.substr(1) + "_" + std::to_string(kit.integer("node")),
              ros::init_options::NoSigintHandler);
    // NodeHandle waits for the master without end.
    if (!ros::master::check())
      throw MiddlewareFailed("no master at " + uri + "; is rosmaster running?");
    handle_ = std::make_unique<ros::NodeHandle>();
    // Registered after the start, because roscpp registers an appender of its own.
    reports_ = std::make_unique<Reports>();
  }

  void publish_on(const std::string& topic) {
    publisher_ = handle_->advertise<Message>(name(topic), queue_size());
  }
  void subscribe(const std::string& topic, std::function<void(const Message&)> take) {
    ros::TransportHints hints;
    if (kit_.string("settings.transport") == "udp") hints.unreliable();
    if (kit_.boolean("settings.tcp_nodelay")) hints.tcpNoDelay();
    const boost::function<void(const boost::shared_ptr<const Message>&)> callback =
        [take = std::move(take)](const boost::shared_ptr<const Message>& arrived) {
          take(*arrived);
        };
    subscriber_ = handle_->subscribe<Message>(name(topic), queue_size(), callback,
                                              ros::VoidConstPtr(), hints);
  }
  void publish(Bytes data) {
    assign(outgoing_, data);
    publisher_.publish(outgoing_);
  }
  void publish(const Message& message) { publisher_.publish(message); }

  // Waits for at most this time until a callback has run, and runs all that are due.
  void spin(int64_t timeout_ns) {
    ros::getGlobalCallbackQueue()->callAvailable(
        ros::WallDuration(static_cast<double>(timeout_ns) / 1e9));
  }

  void await_matched() {
    try {
      kit_.await_peers([this] {
        if (!reports_->mismatch().empty())
          throw TypeMismatch("a peer has a topic of this run with another type: " +
                             reports_->mismatch());
        return matched();
      });
    } catch (const TypeMismatch& error) {
      throw MiddlewareFailed(error.what());
    } catch (const MiddlewareFailed& error) {
      throw MiddlewareFailed(std::string(error.what()) + " " + explanation());
    }
  }

  void ready() {
    wattwire::Ready ready;
    ready.matched = matched();
    ready.discovery_ns = wattwire::now_ns() - begin_ns_;
    ready.library = {"roscpp",
                     std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) +
                         "." + std::to_string(ROS_VERSION_PATCH),
                     std::string("std_msgs ") + ros::message_traits::md5sum<Message>()};
    ready.effective["type"] = std::string(ros::message_traits::datatype<Message>());
    const std::string protocol =
        protocol_of_connections({publisher_.getTopic(), subscriber_.getTopic()});
    ready.effective["protocol"] = protocol;
    ready.effective["transport"] = std::string(protocol == "UDPROS" ? "udp/ipv4" : "tcp/ipv4");
    ready.guarantee = {"best_effort", protocol == "UDPROS" ? "none" : "per_sender", "drop_oldest"};
    kit_.ready(ready);
  }

  // Lets roscpp's threads send what is queued; it has no call that waits for this.
  void drain() {
    wattwire::sleep_until_ns(wattwire::now_ns() + kit_.integer("quiet_ms") * 1000000);
  }

 private:
  std::string name(const std::string& topic) const { return prefix_ + "/" + topic; }
  uint32_t queue_size() const {
    return static_cast<uint32_t>(kit_.integer("settings.queue_size", 1, 1000000));
  }

  // Returns the number of connected peers; a relay's count begins with its successor.
  int64_t matched() const {
    const int64_t readers = publisher_ ? publisher_.getNumSubscribers() : INT32_MAX;
    const int64_t writers = subscriber_ ? subscriber_.getNumPublishers() : INT32_MAX;
    if (kit_.string("role") == "relay") return readers > 0 ? 1 + writers : 0;
    return std::min(readers, writers);
  }

  std::string explanation() const {
    const std::string topic = publisher_ ? publisher_.getTopic() : subscriber_.getTopic();
    return explain(reports_->last(), topic, ros::message_traits::datatype<Message>(), prefix_);
  }

  Kit& kit_;
  const int64_t begin_ns_;
  const std::string prefix_;
  std::unique_ptr<ros::NodeHandle> handle_;
  std::unique_ptr<Reports> reports_;
  ros::Publisher publisher_;
  ros::Subscriber subscriber_;
  Message outgoing_;
};

// Calls `role` with an empty message of the type of the payload's encoding.
template <class Role>
void with_type(const Kit& kit, Role role) {
  if (kit.text()) return role(std_msgs::String());
  role(std_msgs::UInt8MultiArray());
}
