// JSON-RPC 2.0: handles requests and parses responses.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rpc {

using Json = nlohmann::json;

struct Error {
  int code;
  const char* message;
};
constexpr Error kParseError = {-32700, "Parse error"};
constexpr Error kInvalidRequest = {-32600, "Invalid Request"};
constexpr Error kMethodNotFound = {-32601, "Method not found"};
constexpr Error kInvalidParams = {-32602, "Invalid params"};

class Dispatcher {
 public:
  // Takes `params`, an array or an object, and returns the result or throws an Error.
  using Method = std::function<Json(const Json& params)>;

  void add(const std::string& name, Method method) { methods_[name] = std::move(method); }

  // Returns the response to a request, or an empty text for a notification. Rejects batches.
  std::string answer(const std::string& text) const {
    Json id;
    bool notified = false;
    try {
      const Json request = Json::parse(text, nullptr, false);
      if (request.is_discarded()) throw kParseError;
      if (!request.is_object()) throw kInvalidRequest;
      const auto entry = request.find("id");
      if (entry != request.end()) id = *entry;
      notified = entry == request.end() && is_request(request);
      Json result = result_of(request);
      if (notified) return "";
      return Json{{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"result", std::move(result)}}.dump();
    } catch (const Error& error) {
      if (notified) return "";
      return Json{{"jsonrpc", "2.0"},
                  {"id", std::move(id)},
                  {"error", {{"code", error.code}, {"message", error.message}}}}
          .dump();
    }
  }

 private:
  static bool is_request(const Json& request) {
    const auto version = request.find("jsonrpc"), method = request.find("method");
    const auto params = request.find("params");
    return version != request.end() && *version == "2.0" && method != request.end() &&
           method->is_string() && (params == request.end() || params->is_structured());
  }

  Json result_of(const Json& request) const {
    static const Json kNothing = Json::array();
    if (!is_request(request)) throw kInvalidRequest;
    const auto params = request.find("params");
    const auto method = methods_.find(request["method"].get_ref<const std::string&>());
    if (method == methods_.end()) throw kMethodNotFound;
    return method->second(params == request.end() ? kNothing : *params);
  }

  std::map<std::string, Method> methods_;
};

inline std::string request(uint64_t id, const char* method, Json params) {
  return Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}
      .dump();
}

struct Response {
  bool ours;                   // the response has the request's id, or is an error without an id
  std::optional<Json> result;  // nullopt for an error or an invalid response
  std::string error;           // the server's error object, or empty
};

inline Response response_to(uint64_t id, std::string_view text) {
  Json response = Json::parse(text, nullptr, false);
  if (!response.is_object()) return {true, std::nullopt, ""};
  const auto entry = response.find("id");
  if (entry != response.end() && !entry->is_null() && *entry != id)
    return {false, std::nullopt, ""};
  const auto result = response.find("result");
  if (response.count("error") != 0) return {true, std::nullopt, response["error"].dump()};
  if (result == response.end()) return {true, std::nullopt, ""};
  return {true, std::move(*result), ""};
}

}  // namespace rpc
