// What roscpp reports about the connections of this node.
#pragma once

#include <ros/network.h>
#include <ros/xmlrpc_manager.h>
#include <xmlrpcpp/XmlRpcClient.h>

#include <set>
#include <string>

#include "wattwire/kit.hpp"

// Returns TCPROS or UDPROS, the protocol of the first connection of these topics. roscpp has no
// function for it, so the node calls the slave API of itself (getBusInfo), as rosnode does.
inline std::string protocol_of_connections(const std::set<std::string>& topics) {
  std::string host;
  uint32_t port = 0;
  ros::network::splitURI(ros::XMLRPCManager::instance()->getServerURI(), host, port);
  XmlRpc::XmlRpcClient client(host.c_str(), static_cast<int>(port), "/");
  XmlRpc::XmlRpcValue caller, answer;
  caller[0] = "/wattwire";
  if (client.execute("getBusInfo", caller, answer) && answer.size() == 3) {
    XmlRpc::XmlRpcValue& connections = answer[2];
    for (int i = 0; i < connections.size(); ++i) {
      XmlRpc::XmlRpcValue& connection = connections[i];  // id, peer, direction, protocol, topic, …
      if (topics.count(connection[4]) > 0) return connection[3];
    }
  }
  throw wattwire::MiddlewareFailed("roscpp reports no connection to the peers of this node");
}
