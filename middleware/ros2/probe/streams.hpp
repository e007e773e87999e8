// Streams: the publishers of the topics, each with the index that its records have.

#pragma once

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "endpoints.hpp"
#include "facts.hpp"
#include "subscription.hpp"

class Streams {
 public:
  explicit Streams(FactFile& facts) : facts_(facts) {}

  uint32_t index_of(const Gid& gid) { return publisher(gid).index; }

  // Writes what the graph knows about a publisher.
  void note(const std::string& topic, const Endpoint& endpoint, bool is_read,
            const std::string& same_host, const std::string& process) {
    Publisher& known = publisher(endpoint.gid);
    known.is_present = true;
    Fact fact("stream");
    fact.number("index", known.index).text("gid", hex(endpoint.gid)).text("topic", topic);
    fact.text("node", endpoint.node).text("type", endpoint.type).flag("read", is_read);
    fact.raw("qos", qos_json(endpoint.qos)).raw("same_host", same_host).raw("process", process);
    facts_.write_if_new(fact_name(known.index), fact);
  }

  // A publisher whose topic could not be queried: it has not ended.
  void keep(const Gid& gid) { publisher(gid).is_present = true; }

  // Publishers that the graph no longer has. Of a killed one, the middleware learns it late. One
  // that returns is written again, because a reader of the facts takes it for ended until then.
  void note_ended() {
    for (auto& [gid, known] : publishers_) {
      if (known.was_present && !known.is_present) {
        facts_.write(Fact("gone")
                         .number("index", known.index)
                         .number("monotonic_ns", clock_ns(CLOCK_MONOTONIC)));
        facts_.forget(fact_name(known.index));
      }
      known.was_present = known.is_present;
      known.is_present = false;
    }
  }

  // Cyclone DDS marks a message with 8 bytes of its own instead of the gid of the publisher.
  static bool is_mark(const Gid& gid) {
    return std::all_of(gid.begin() + 8, gid.end(), [](uint8_t byte) { return byte == 0; });
  }

  std::optional<uint32_t> index_of_mark(const Gid& mark) const {
    const auto known = marked_.find(mark);
    return known == marked_.end() ? std::nullopt : std::optional(known->second);
  }

  // Returns the stream of a new mark: that of the only publisher, or else one of its own, whose
  // messages can be told apart, but not attributed to a node. A publisher has only one mark: if the
  // only one has another, the message is from a publisher that the graph does not have yet.
  uint32_t add_mark(const Gid& mark, const std::string& topic, const std::string& type,
                    const std::optional<Gid>& only_publisher) {
    if (only_publisher.has_value() && !has_mark(index_of(*only_publisher))) {
      return marked_.emplace(mark, index_of(*only_publisher)).first->second;
    }
    const uint32_t index = index_of(mark);
    marked_.emplace(mark, index);
    Fact fact("stream");
    fact.number("index", index).text("gid", hex(mark)).text("topic", topic).text("node", "");
    fact.text("type", type).flag("read", true).flag("mark", true);
    facts_.write(fact.raw("qos", "null").raw("same_host", "null"));
    return index;
  }

 private:
  struct Publisher {
    uint32_t index;
    bool was_present = false;  // in the graph, at the last scan
    bool is_present = false;
  };

  Publisher& publisher(const Gid& gid) {
    const auto known = publishers_.find(gid);
    if (known != publishers_.end()) return known->second;
    const auto index = static_cast<uint32_t>(publishers_.size());
    facts_.write(Fact("stream").number("index", index).text("gid", hex(gid)));
    return publishers_.emplace(gid, Publisher{index}).first->second;
  }

  bool has_mark(uint32_t index) const {
    return std::any_of(marked_.begin(), marked_.end(),
                       [&](const auto& known) { return known.second == index; });
  }

  static std::string fact_name(uint32_t index) { return "stream " + std::to_string(index); }

  FactFile& facts_;
  std::map<Gid, Publisher> publishers_;
  std::map<Gid, uint32_t> marked_;
};
