// Common code of both roles: TLS files and the fields of READY.
#pragma once

#include <grpcpp/grpcpp.h>

#include <fstream>
#include <iterator>
#include <string>

#include "wattwire/kit.hpp"

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw wattwire::MiddlewareFailed("TLS: cannot read " + path);
  return text;
}

inline bool uses_tls(const wattwire::Kit& kit) { return !kit.string("tls.authority").empty(); }

inline wattwire::Ready ready(const wattwire::Kit& kit, const std::string& tls) {
  wattwire::Ready ready;
  ready.library = {"grpc++", grpc::Version(), "gcc " __VERSION__};
  ready.effective["keep_alive"] = kit.string("settings.keep_alive") == "off" ? "off" : "on";
  ready.effective["server_workers"] = "a thread for each call";
  ready.effective["tls"] = tls;
  ready.effective["transport"] = "http/2 over tcp/ipv4";
  ready.guarantee = {"reliable", "none", "block"};
  return ready;
}
