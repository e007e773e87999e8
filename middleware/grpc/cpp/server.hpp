// Server and pong: the synchronous server.
#pragma once

#include <chrono>
#include <string>

#include "messages.hpp"
#include "ready.hpp"

class Server final : public wattwire::Calls::Service {
 public:
  explicit Server(wattwire::Kit& kit) : kit_(kit) {}
  grpc::Status Bytes(grpc::ServerContext*, const wattwire::BytesPayload* request,
                     wattwire::BytesPayload* reply) override {
    return answer(*request, reply);
  }
  grpc::Status Text(grpc::ServerContext*, const wattwire::TextPayload* request,
                    wattwire::TextPayload* reply) override {
    return answer(*request, reply);
  }
  grpc::Status Record(grpc::ServerContext*, const wattwire::RecordPayload* request,
                      wattwire::RecordPayload* reply) override {
    return answer(*request, reply);
  }

 private:
  template <class Payload>
  grpc::Status answer(const Payload& request, Payload* reply) {
    wattwire::Record record;
    const auto due = kit_.serve(read(request, &record));
    if (!due) return {grpc::StatusCode::FAILED_PRECONDITION, "a request of another run"};
    fill(reply, *due);
    kit_.served();  // the library sends the reply after the return
    return grpc::Status::OK;
  }

  wattwire::Kit& kit_;
};

inline void serve(wattwire::Kit& kit) {
  auto credentials = grpc::InsecureServerCredentials();
  if (uses_tls(kit)) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back(
        {text_of(kit.string("tls.key")), text_of(kit.string("tls.certificate"))});
    credentials = grpc::SslServerCredentials(options);
  }
  Server service(kit);
  const std::string& host = kit.string("host.address");
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(host + ":0", credentials, &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0)
    throw wattwire::MiddlewareFailed("cannot start a server on " + host +
                                     "; standard error has the library's reason");
  kit.listening({host + ":" + std::to_string(port)});
  kit.ready(ready(kit, uses_tls(kit) ? "ssl" : "none"));
  kit.wait();
  server->Shutdown(std::chrono::system_clock::now());
}
