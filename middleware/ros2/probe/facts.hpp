// Facts about the graph and the probe as JSON lines in a file.

#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const unsigned char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      result += '\\';
      result += static_cast<char>(c);
    } else if (c < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      result += escaped;
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + "\"";
}

// A JSON object. The keys are literals of this program.
class Fact {
 public:
  Fact() = default;
  explicit Fact(const char* kind) { text("kind", kind); }
  Fact& text(const char* key, const std::string& value) { return raw(key, quoted(value)); }
  Fact& number(const char* key, int64_t value) { return raw(key, std::to_string(value)); }
  Fact& flag(const char* key, bool value) { return raw(key, value ? "true" : "false"); }
  Fact& raw(const char* key, const std::string& json) {
    fields_ += (fields_.empty() ? "" : ",") + quoted(key) + ":" + json;
    return *this;
  }
  std::string json() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

class FactFile {
 public:
  explicit FactFile(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  }
  ~FactFile() { close(file_); }
  FactFile(const FactFile&) = delete;
  FactFile& operator=(const FactFile&) = delete;

  // Writes a line with one call, so that a reader sees whole lines.
  void write(const Fact& fact) {
    const std::string line = fact.json() + "\n";
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error(std::string("facts: ") + std::strerror(errno));
    }
  }

  // Writes a fact if it differs from the last one of this name.
  void write_if_new(const std::string& name, const Fact& fact) {
    std::string& last = last_[name];
    if (last == fact.json()) return;
    last = fact.json();
    write(fact);
  }

  // Lets write_if_new() write this fact also if it has not changed.
  void forget(const std::string& name) { last_.erase(name); }

 private:
  const int file_;
  std::map<std::string, std::string> last_;
};
