// JSON-RPC 2.0: from a request's text to its response's, and from a response's to its result.
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

  // The response to a request; empty to a notification. Batches are no request objects here.
  std::string answer(const std::string& text) const {
    Json id;
    bool notified = false;
    try {
      const Json request = Json::parse(text, nullptr, false);
      if (request.is_discarded()) throw kParseError;
      if (!request.is_object()) throw kInvalidRequest;
      const auto given = request.find("id");
      if (given != request.end()) id = *given;
      notified = given == request.end() && is_request(request);
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
  static bool is_request(const Json& given) {
    const auto version = given.find("jsonrpc"), method = given.find("method");
    const auto params = given.find("params");
    return version != given.end() && *version == "2.0" && method != given.end() &&
           method->is_string() && (params == given.end() || params->is_structured());
  }

  Json result_of(const Json& request) const {
    static const Json kNothing = Json::array();
    if (!is_request(request)) throw kInvalidRequest;
    const auto params = request.find("params");
    const auto found = methods_.find(request["method"].get_ref<const std::string&>());
    if (found == methods_.end()) throw kMethodNotFound;
    return found->second(params == request.end() ? kNothing : *params);
  }

  std::map<std::string, Method> methods_;
};

inline std::string request(uint64_t id, const char* method, Json params) {
  return Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}
      .dump();
}

struct Response {
  bool ours;                   // it has the request's id, or is an error that has none
  std::optional<Json> result;  // nothing: an error, or no response at all
  std::string error;           // as the server says it; empty: none
};

inline Response response_to(uint64_t id, std::string_view text) {
  Json response = Json::parse(text, nullptr, false);
  if (!response.is_object()) return {true, std::nullopt, ""};
  const auto found = response.find("id");
  if (found != response.end() && !found->is_null() && *found != id)
    return {false, std::nullopt, ""};
  const auto result = response.find("result");
  if (response.count("error") != 0) return {true, std::nullopt, response["error"].dump()};
  if (result == response.end()) return {true, std::nullopt, ""};
  return {true, std::move(*result), ""};
}

}  // namespace rpc
