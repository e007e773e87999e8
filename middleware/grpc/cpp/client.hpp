// Client and ping: the blocking stub, on one channel or on a channel per call.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages.hpp"
#include "ready.hpp"

// The calls of all workers, on one channel or on a channel per call.
class Calls {
 public:
  explicit Calls(wattwire::Kit& kit) : kit_(kit), credentials_(grpc::InsecureChannelCredentials()) {
    const auto endpoints = kit.strings("peers.endpoints");
    if (endpoints.size() != 1)
      throw wattwire::BadSpec("peers.endpoints", std::to_string(endpoints.size()) + " entries",
                              "1");
    endpoint_ = endpoints[0];
    if (uses_tls(kit)) {
      grpc::SslCredentialsOptions options;
      options.pem_root_certs = text_of(kit.string("tls.authority"));
      credentials_ = grpc::SslCredentials(options);
    }
    if (kit.string("settings.keep_alive") != "off") kept_ = connect();
  }

  // Returns the library's security type of the probe's connection.
  const std::string& security() const { return security_; }

  // Calls the method for this payload. The result refers to `reply` and `record`.
  template <class Payload, class Method>
  std::optional<wattwire::Bytes> call(Method method, wattwire::Bytes payload, int64_t timeout_ns,
                                      Payload* reply, wattwire::Record* record) {
    const auto stub = kept_ ? nullptr : connect();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns));
    Payload request;
    fill(&request, payload);
    const grpc::Status status = ((kept_ ? *kept_ : *stub).*method)(&context, request, reply);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return std::nullopt;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
        status.error_message().find("handshake failed") != std::string::npos)
      throw wattwire::MiddlewareFailed("TLS: " + status.error_message());
    if (!status.ok()) throw wattwire::SendFailed(status.error_message());
    if (security_.empty())
      security_ = security_of(context);  // set by the probe, in a single thread
    return read(*reply, record);
  }

 private:
  std::unique_ptr<wattwire::Calls::Stub> connect() const {
    grpc::ChannelArguments arguments;
    // By default channels to the same address share a connection.
    if (kit_.string("settings.keep_alive") == "off")
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return wattwire::Calls::NewStub(grpc::CreateCustomChannel(endpoint_, credentials_, arguments));
  }

  static std::string security_of(const grpc::ClientContext& context) {
    const auto context_auth = context.auth_context();
    const auto types = context_auth->FindPropertyValues("transport_security_type");
    return types.empty() ? "none" : std::string(types[0].data(), types[0].size());
  }

  const wattwire::Kit& kit_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::string endpoint_, security_;
  std::unique_ptr<wattwire::Calls::Stub> kept_;
};

template <class Payload>
using Method = grpc::Status (wattwire::Calls::Stub::*)(grpc::ClientContext*, const Payload&,
                                                       Payload*);

template <class Payload>
void call_by(wattwire::Kit& kit, Method<Payload> method) {
  struct Worker {
    Payload reply;
    wattwire::Record record;
  };
  Calls calls(kit);
  std::vector<Worker> workers(kit.workers());
  auto call = [&](size_t worker, wattwire::Bytes buffer, int64_t timeout_ns) {
    Worker& state = workers[worker];
    return calls.call(method, buffer, timeout_ns, &state.reply, &state.record);
  };
  const int64_t discovery_ns = kit.probe(
      [&](wattwire::Bytes buffer, int64_t timeout_ns) { return call(0, buffer, timeout_ns); });
  wattwire::Ready fields = ready(kit, calls.security());
  fields.matched = 1;
  fields.discovery_ns = discovery_ns;
  kit.ready(fields);
  kit.calls(call);
}

inline void call(wattwire::Kit& kit) {
  if (kit.encoding() == "record")
    call_by<wattwire::RecordPayload>(kit, &wattwire::Calls::Stub::Record);
  else if (kit.text() || !kit.string("payload.literal").empty())
    call_by<wattwire::TextPayload>(kit, &wattwire::Calls::Stub::Text);
  else
    call_by<wattwire::BytesPayload>(kit, &wattwire::Calls::Stub::Bytes);
}
