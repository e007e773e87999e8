// gRPC node: the synchronous server and the blocking stub.
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "messages.hpp"

using wattwire::Bytes;
using wattwire::Kit;
using wattwire::MiddlewareFailed;
using wattwire::Type;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw MiddlewareFailed("TLS: cannot read " + path);
  return text;
}

bool uses_tls(const Kit& kit) { return !kit.string("tls.authority").empty(); }

wattwire::Ready ready(const Kit& kit, const std::string& tls) {
  wattwire::Ready ready;
  ready.library = {"grpc++", grpc::Version(), "gcc " __VERSION__};
  ready.effective["keep_alive"] = kit.string("settings.keep_alive") == "off" ? "off" : "on";
  ready.effective["server_workers"] = "a thread for each call";
  ready.effective["tls"] = tls;
  ready.effective["transport"] = "http/2 over tcp/ipv4";
  ready.guarantee = {"reliable", "none", "block"};
  return ready;
}

class Server final : public wattwire::Calls::Service {
 public:
  explicit Server(Kit& kit) : kit_(kit) {}
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
    kit_.served();  // the library sends it once this returns
    return grpc::Status::OK;
  }

  Kit& kit_;
};

void serve(Kit& kit) {
  auto credentials = grpc::InsecureServerCredentials();
  if (uses_tls(kit)) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back(
        {text_of(kit.string("tls.key")), text_of(kit.string("tls.certificate"))});
    credentials = grpc::SslServerCredentials(options);
  }
  Server service(kit);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0)
    throw MiddlewareFailed("no server on 127.0.0.1; standard error has the library's reason");
  kit.listening({"127.0.0.1:" + std::to_string(port)});
  kit.ready(ready(kit, uses_tls(kit) ? "ssl" : "none"));
  kit.wait();
  server->Shutdown(std::chrono::system_clock::now());
}

// The client's side: one channel for all workers, or one for each call.
class Calls {
 public:
  explicit Calls(Kit& kit) : kit_(kit), credentials_(grpc::InsecureChannelCredentials()) {
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

  // What the library says of the connection that the probe was answered on.
  const std::string& security() const { return security_; }

  // One call of the method for this payload; `reply` and `record` hold what is returned.
  template <class Payload, class Method>
  std::optional<Bytes> call(Method method, Bytes payload, int64_t timeout_ns, Payload* reply,
                            wattwire::Record* record) {
    const auto stub = kept_ ? nullptr : connect();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns));
    Payload request;
    fill(&request, payload);
    const grpc::Status status = ((kept_ ? *kept_ : *stub).*method)(&context, request, reply);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return std::nullopt;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      if (status.error_message().find("handshake failed") != std::string::npos)
        throw MiddlewareFailed("TLS: " + status.error_message());
      throw wattwire::SendFailed(status.error_message());
    }
    if (!status.ok()) return Bytes();
    if (security_.empty()) security_ = security_of(context);  // of the probe: one thread
    return read(*reply, record);
  }

 private:
  std::unique_ptr<wattwire::Calls::Stub> connect() const {
    grpc::ChannelArguments arguments;
    // Without it channels to one address share their connection.
    if (kit_.string("settings.keep_alive") == "off")
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return wattwire::Calls::NewStub(grpc::CreateCustomChannel(endpoint_, credentials_, arguments));
  }

  static std::string security_of(const grpc::ClientContext& context) {
    const auto context_auth = context.auth_context();
    const auto found = context_auth->FindPropertyValues("transport_security_type");
    return found.empty() ? "none" : std::string(found[0].data(), found[0].size());
  }

  const Kit& kit_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::string endpoint_, security_;
  std::unique_ptr<wattwire::Calls::Stub> kept_;
};

template <class Payload>
using Method = grpc::Status (wattwire::Calls::Stub::*)(grpc::ClientContext*, const Payload&,
                                                       Payload*);

template <class Payload>
void call_by(Kit& kit, Method<Payload> method) {
  struct Worker {
    Payload reply;
    wattwire::Record record;
  };
  Calls calls(kit);
  std::vector<Worker> workers(kit.workers());
  auto call = [&](size_t worker, Bytes buffer, int64_t timeout_ns) {
    Worker& own = workers[worker];
    return calls.call(method, buffer, timeout_ns, &own.reply, &own.record);
  };
  const int64_t discovery_ns =
      kit.probe([&](Bytes buffer, int64_t timeout_ns) { return call(0, buffer, timeout_ns); });
  wattwire::Ready told = ready(kit, calls.security());
  told.matched = 1;
  told.discovery_ns = discovery_ns;
  kit.ready(told);
  kit.calls(call);
}

void call(Kit& kit) {
  if (kit.encoding() == "record")
    call_by<wattwire::RecordPayload>(kit, &wattwire::Calls::Stub::Record);
  else if (kit.text() || !kit.string("payload.literal").empty())
    call_by<wattwire::TextPayload>(kit, &wattwire::Calls::Stub::Text);
  else
    call_by<wattwire::BytesPayload>(kit, &wattwire::Calls::Stub::Bytes);
}

}  // namespace

int main(int argc, char** argv) {
  wattwire::Cell cell;
  cell.roles = {{"client", call}, {"server", serve}, {"ping", call}, {"pong", serve}};
  cell.settings = {
      {"keep_alive", Type::kString}, {"tls", Type::kBoolean}, {"server_workers", Type::kInteger}};
  cell.values = {{"server_workers", {"0"}}};
  cell.capabilities = {"encoding.bytes", "encoding.text", "encoding.record", "pacing.kit",
                       "loop.open",      "loop.closed",   "reply.echo",      "reply.ack",
                       "reply.literal",  "literal",       "async_client",    "tls"};
  cell.payload_bytes_max = 4000000;
  cell.record_bytes_max = 3000000;
  return wattwire::run(argc, argv, cell);
}
