// REST node with the server and the client of cpp-httplib.
#include <deque>

#include "wattwire/record_json.hpp"
#include "web/http.hpp"

using wattwire::Bytes;
using wattwire::Kit;

namespace {

constexpr char kText[] = "text/plain; charset=utf-8";

// Returns the content type for the payloads of this run.
const char* content_type(const Kit& kit, bool literal) {
  if (kit.encoding() == "record") return "application/json";
  return literal || kit.text() ? kText : "application/octet-stream";
}

// Decodes a body for the kit. Stores a record in `record`.
Bytes decoded(const Kit& kit, Bytes body, std::optional<wattwire::Record>* record) {
  if (kit.encoding() != "record") return body;
  *record = wattwire::record_from_json(body.view());
  return *record ? Bytes(**record) : Bytes::unreadable();
}

void serve(Kit& kit) {
  const char* type =
      content_type(kit, kit.string("reply") == "literal" || !kit.string("payload.literal").empty());
  wattwire::http::serve(kit, "/echo", [&kit, type](const auto& request, auto& response) {
    std::optional<wattwire::Record> record;
    const Bytes payload = decoded(kit, request.body, &record);
    const auto reply = kit.serve(payload);
    if (!reply) {
      response.status = payload.is_unreadable() ? 400 : 409;
    } else if (reply->record != nullptr) {
      response.set_content(wattwire::to_json(*reply->record), type);
    } else {
      response.set_content(reinterpret_cast<const char*>(reply->data), reply->size, type);
    }
  });
}

// A caller's connection and its last reply.
struct Caller {
  Caller(const Kit& kit, const std::string& url) : client(kit, url) {}
  wattwire::http::Client client;
  std::optional<wattwire::Record> record;
};

void call(Kit& kit) {
  const auto endpoints = kit.strings("peers.endpoints");
  if (endpoints.size() != 1)
    throw wattwire::BadSpec("peers.endpoints", std::to_string(endpoints.size()) + " entries", "1");
  const char* type = content_type(kit, !kit.string("payload.literal").empty());
  std::deque<Caller> callers;
  for (size_t at = 0; at < kit.workers(); ++at) callers.emplace_back(kit, endpoints[0]);
  auto send = [&](size_t worker, Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    Caller& caller = callers[worker];
    const std::string json = buffer.record != nullptr ? wattwire::to_json(*buffer.record) : "";
    const auto body =
        caller.client.post(buffer.record != nullptr ? Bytes(json) : buffer, type, timeout_ns);
    if (!body) return std::nullopt;
    return decoded(kit, *body, &caller.record);
  };
  const int64_t discovery_ns =
      kit.probe([&](Bytes buffer, int64_t timeout_ns) { return send(0, buffer, timeout_ns); });
  wattwire::Ready ready = callers[0].client.ready(kit);
  ready.discovery_ns = discovery_ns;
  kit.ready(ready);
  kit.calls(send);
}

}  // namespace

int main(int argc, char** argv) {
  wattwire::run(argc, argv, {{"client", call}, {"server", serve}, {"ping", call}, {"pong", serve}});
}
