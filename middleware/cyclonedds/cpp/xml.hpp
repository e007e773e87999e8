// Text in Cyclone DDS's XML configuration.

#pragma once

#include <string>

inline std::string escaped_xml(const std::string& text) {
  std::string out;
  for (char c : text)
    out += c == '"' ? "&quot;" : c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

inline std::string quoted_xml(const std::string& text) { return "\"" + escaped_xml(text) + "\""; }
