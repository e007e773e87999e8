// Command line of the probe: --out DIR, then --include, --exclude, --exclude-default PATTERN, and
// --domain N.

#pragma once

#include <fnmatch.h>

#include <stdexcept>
#include <string>
#include <vector>

struct Arguments {
  std::string out;
  std::string domain;
  std::vector<std::string> included;
  std::vector<std::string> excluded;
  std::vector<std::string> excluded_by_default;
};

inline Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int at = 1; at + 1 < argc; at += 2) {
    const std::string name = argv[at];
    const std::string value = argv[at + 1];
    if (name == "--out") {
      arguments.out = value;
    } else if (name == "--domain") {
      arguments.domain = value;
    } else if (name == "--include") {
      arguments.included.push_back(value);
    } else if (name == "--exclude") {
      arguments.excluded.push_back(value);
    } else if (name == "--exclude-default") {
      arguments.excluded_by_default.push_back(value);
    } else {
      throw std::invalid_argument("found " + name +
                                  "; allowed: --out, --domain, --include, --exclude, "
                                  "--exclude-default, each with a value");
    }
  }
  if (argc % 2 == 0) throw std::invalid_argument(std::string(argv[argc - 1]) + " has no value");
  if (arguments.out.empty()) throw std::invalid_argument("--out DIR is missing");
  return arguments;
}

// A pattern without a leading slash is relative to the root: chatter means /chatter.
inline std::string absolute(const std::string& pattern) {
  return pattern.empty() || pattern[0] == '/' || pattern[0] == '*' ? pattern : "/" + pattern;
}

inline bool any_matches(const std::vector<std::string>& patterns, const std::string& topic) {
  for (const std::string& pattern : patterns) {
    if (fnmatch(absolute(pattern).c_str(), topic.c_str(), 0) == 0) return true;
  }
  return false;
}

// Returns whether the user wants a topic. A name that is given in full overrides the default
// exclusions, and an exclusion of the user overrides everything.
inline bool is_wanted(const Arguments& arguments, const std::string& topic) {
  if (any_matches(arguments.excluded, topic)) return false;
  for (const std::string& pattern : arguments.included) {
    if (absolute(pattern) == topic) return true;
  }
  if (any_matches(arguments.excluded_by_default, topic)) return false;
  return arguments.included.empty() || any_matches(arguments.included, topic);
}
