// RPC node: JSON-RPC 2.0 over cpp-httplib.
#include <deque>

#include "dispatcher.hpp"
#include "record_json.hpp"
#include "web/http.hpp"

using wattwire::Bytes;
using wattwire::Kit;

namespace {

const std::string kJsonLibrary = "nlohmann-json " + std::to_string(NLOHMANN_JSON_VERSION_MAJOR) +
                                 "." + std::to_string(NLOHMANN_JSON_VERSION_MINOR) + "." +
                                 std::to_string(NLOHMANN_JSON_VERSION_PATCH);
constexpr rpc::Error kAnotherRun = {-32000, "a request of another run"};

bool is_record(const Kit& kit) { return kit.encoding() == "record"; }

// Decodes a procedure's argument or result for the kit. Stores a record in `record`.
Bytes payload_of(const Kit& kit, const Json& value, std::optional<wattwire::Record>* record) {
  if (!is_record(kit))
    return value.is_string() ? Bytes(value.get_ref<const std::string&>()) : Bytes();
  *record = record_of(value);
  return *record ? Bytes(**record) : Bytes::unreadable();
}

Json value_of(Bytes payload) {
  return payload.record != nullptr ? json_of(*payload.record) : Json(payload.view());
}

const char* procedure(const Kit& kit) { return is_record(kit) ? "echo_record" : "echo"; }

void serve(Kit& kit) {
  auto& dispatcher = *new rpc::Dispatcher;  // never destroyed, because the server's threads use it
  dispatcher.add(procedure(kit), [&kit](const Json& params) {
    if (!params.is_array() || params.size() != 1 || (!is_record(kit) && !params[0].is_string()))
      throw rpc::kInvalidParams;
    std::optional<wattwire::Record> record;
    const Bytes payload = payload_of(kit, params[0], &record);
    const auto reply = kit.serve(payload);
    if (!reply) throw payload.is_unreadable() ? rpc::kInvalidParams : kAnotherRun;
    return value_of(*reply);
  });
  wattwire::http::serve(kit, "/rpc",
                        [&dispatcher](const auto& request, auto& response) {
                          const std::string answer = dispatcher.answer(request.body);
                          response.status = answer.empty() ? 204 : 200;
                          if (!answer.empty()) response.set_content(answer, "application/json");
                        },
                        {{"json", kJsonLibrary}});
}

// A caller's connection, its number of calls, and its last reply.
struct Caller {
  Caller(const Kit& kit, const std::string& url) : client(kit, url) {}
  wattwire::http::Client client;
  uint64_t calls = 0;
  std::optional<Json> result;
  std::optional<wattwire::Record> record;
};

void call(Kit& kit) {
  const auto endpoints = kit.strings("peers.endpoints");
  if (endpoints.size() != 1)
    throw wattwire::BadSpec("peers.endpoints", std::to_string(endpoints.size()) + " entries", "1");
  std::deque<Caller> callers;
  for (size_t at = 0; at < kit.workers(); ++at) callers.emplace_back(kit, endpoints[0]);
  auto send = [&](size_t worker, Bytes buffer, int64_t timeout_ns) -> std::optional<Bytes> {
    Caller& caller = callers[worker];
    const uint64_t id = caller.calls++;
    const std::string text = rpc::request(id, procedure(kit), Json::array({value_of(buffer)}));
    const auto body = caller.client.post(text, "application/json", timeout_ns);
    if (!body) return std::nullopt;
    rpc::Response response = rpc::response_to(id, body->view());
    if (!response.ours) return std::nullopt;  // the connection carries no further response
    if (!response.error.empty()) throw wattwire::SendFailed("JSON-RPC error " + response.error);
    caller.result = std::move(response.result);
    return caller.result ? payload_of(kit, *caller.result, &caller.record) : Bytes();
  };
  const int64_t discovery_ns =
      kit.probe([&](Bytes buffer, int64_t timeout_ns) { return send(0, buffer, timeout_ns); });
  wattwire::Ready ready = callers[0].client.ready(kit);
  ready.effective["json"] = kJsonLibrary;
  ready.discovery_ns = discovery_ns;
  kit.ready(ready);
  kit.calls(send);
}

}  // namespace

int main(int argc, char** argv) {
  wattwire::run(argc, argv, {{"client", call}, {"server", serve}, {"ping", call}, {"pong", serve}});
}
