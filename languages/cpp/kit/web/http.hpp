// Server and client of cpp-httplib for cells whose calls are HTTP POSTs. kit.hpp does not include
// this file.
#pragma once

#include <httplib.h>
#include <netinet/tcp.h>
#include <openssl/opensslv.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "wattwire/kit.hpp"

namespace wattwire::http {

inline bool asks(const Kit& kit, const std::string& setting) {
  return kit.string("settings." + setting) == "on";
}

// Options of the last socket and the TLS version of the last handshake, for READY.
class ConnectionFacts {
 public:
  // Reads TCP_NODELAY. On a server it extra sets the library's default options, because a user's
  // function replaces the library's.
  httplib::SocketOptions options(bool server) {
    return [this, server](socket_t opened) {
      if (server) httplib::default_socket_options(opened);
      int on = 0;
      socklen_t bytes = sizeof on;
      getsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &on, &bytes);
      nodelay_ = on != 0;
    };
  }
  void see(const SSL* handshaken) { tls_ = SSL_get_version(handshaken); }
  void see(const char* tls) { tls_ = tls; }

  Ready ready() const {
    Ready ready;
    ready.library = {"cpp-httplib", CPPHTTPLIB_VERSION,
                     "gcc " __VERSION__ ", " OPENSSL_VERSION_TEXT};
    ready.guarantee = {"reliable", "none", "block"};
    ready.effective["tcp_nodelay"] = nodelay_.load();
    ready.effective["tls"] = tls_.load();
    ready.effective["http_version"] = "1.1";
    ready.effective["transport"] = "tcp/ipv4";
    return ready;
  }

 private:
  std::atomic<bool> nodelay_{false};
  std::atomic<const char*> tls_{"none"};
};

// A client with one connection, or one per call without keep-alive. Not thread-safe.
class Client {
 public:
  // `url` is an entry of peers.endpoints, such as http://127.0.0.1:8080/echo.
  Client(const Kit& kit, const std::string& url)
      : path_(url.substr(std::min(url.find('/', url.find("//") + 2), url.size()))),
        client_(url.substr(0, url.size() - path_.size())) {
    if (path_.empty() || !client_.is_valid())
      throw BadSpec("peers.endpoints", url, "a URL such as http://127.0.0.1:8080/echo");
    if (kit.string("settings.tcp_nodelay") != "default")
      client_.set_tcp_nodelay(asks(kit, "tcp_nodelay"));
    client_.set_keep_alive(asks(kit, "keep_alive"));  // the library's default is off
    client_.set_socket_options(facts_.options(false));
    const std::string& authority = kit.string("tls.authority");
    if (authority.empty()) return;
    client_.set_ca_cert_path(authority);
    SSL_CTX_set_app_data(client_.ssl_context(), &facts_);
    SSL_CTX_set_info_callback(client_.ssl_context(), [](const SSL* ssl, int where, int) {
      if ((where & SSL_CB_HANDSHAKE_DONE) == 0) return;
      static_cast<ConnectionFacts*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))->see(ssl);
    });
  }

  // Returns the response's body, valid until the next call, or nullopt at the timeout. Throws
  // SendFailed if the call failed (C-36), and MiddlewareFailed if TLS does not trust the server.
  std::optional<Bytes> post(Bytes body, const char* content_type, int64_t timeout_ns) {
    const int64_t begin = now_ns();
    const auto seconds = static_cast<time_t>(timeout_ns / 1000000000);
    const auto microseconds = static_cast<time_t>(timeout_ns % 1000000000 / 1000);
    client_.set_connection_timeout(seconds, microseconds);
    client_.set_write_timeout(seconds, microseconds);
    client_.set_read_timeout(seconds, microseconds);
    result_ =
        client_.Post(path_, reinterpret_cast<const char*>(body.data), body.size, content_type);
    if (result_ && result_->status != 200)
      throw SendFailed("HTTP status " + std::to_string(result_->status));
    if (result_) return Bytes(result_->body);
    const std::string reason = httplib::to_string(result_.error());
    if (result_.error() == httplib::Error::SSLServerVerification ||
        result_.error() == httplib::Error::SSLLoadingCerts)
      throw MiddlewareFailed("TLS: " + reason + ": " + distrust());
    if (result_.error() == httplib::Error::Read && now_ns() - begin >= timeout_ns)
      return std::nullopt;
    throw SendFailed(reason);
  }

  Ready ready(const Kit& kit) const {
    Ready ready = facts_.ready();
    ready.effective["keep_alive"] = asks(kit, "keep_alive") ? "on" : "off";
    ready.matched = 1;
    return ready;
  }

 private:
  std::string distrust() const {
    const long result = client_.get_openssl_verify_result();
    return result == X509_V_OK ? "the certificate does not match this host"
                               : X509_verify_cert_error_string(result);
  }

  ConnectionFacts facts_;
  const std::string path_;
  httplib::Client client_;
  httplib::Result result_{nullptr, httplib::Error::Unknown};
};

inline std::unique_ptr<httplib::Server> open_server(const Kit& kit) {
  if (kit.string("tls.authority").empty()) return std::make_unique<httplib::Server>();
  auto server = std::make_unique<httplib::SSLServer>(kit.string("tls.certificate").c_str(),
                                                     kit.string("tls.key").c_str());
  if (server->is_valid()) return server;
  char reason[256];
  ERR_error_string_n(ERR_peek_last_error(), reason, sizeof reason);
  throw MiddlewareFailed("tls.certificate or tls.key: " + std::string(reason));
}

// Runs a server until the end of the drain. `answer(request, response)` handles POSTs to `path` in
// the threads of the library's pool. READY's `effective` includes `extra`.
template <class Answer>
void serve(Kit& kit, const std::string& path, Answer answer,
           const std::map<std::string, Scalar>& extra = {}) {
  // Never destroyed, because the server's threads run until the process ends.
  auto& facts = *new ConnectionFacts;
  httplib::Server& server = *open_server(kit).release();
  if (kit.string("settings.tcp_nodelay") != "default")
    server.set_tcp_nodelay(asks(kit, "tcp_nodelay"));
  // With keep-alive, the library's limit of 5 requests would close connections.
  const size_t requests_max = asks(kit, "keep_alive") ? INT32_MAX : CPPHTTPLIB_KEEPALIVE_MAX_COUNT;
  server.set_keep_alive_max_count(requests_max);
  server.set_socket_options(facts.options(true));
  int64_t workers = kit.integer("settings.server_workers", 0, 4096);
  if (workers == 0) workers = static_cast<int64_t>(CPPHTTPLIB_THREAD_POOL_COUNT);
  server.new_task_queue = [workers] {
    return new httplib::ThreadPool(static_cast<size_t>(workers));
  };
  server.Post(path, answer);
  // The library calls the logger after it has written the response, in the same thread.
  server.set_logger([&kit](const httplib::Request&, const httplib::Response&) { kit.served(); });
  const std::string& host = kit.string("host.address");
  const int port = server.bind_to_any_port(host);
  if (port < 0) throw MiddlewareFailed("bind " + host + ": " + std::strerror(errno));
  std::thread([&server] { server.listen_after_bind(); }).detach();
  const bool tls = !kit.string("tls.authority").empty();
  if (tls) facts.see("up to TLSv1.3");
  kit.listening({(tls ? "https://" : "http://") + host + ":" + std::to_string(port) + path});
  Ready ready = facts.ready();
  ready.effective["server"] = "cpp-httplib/" CPPHTTPLIB_VERSION;
  ready.effective["server_workers"] = workers;
  ready.effective["keep_alive"] = "on";
  ready.effective["keep_alive_requests_max"] = requests_max;
  for (const auto& [name, value] : extra) ready.effective[name] = value;
  kit.ready(ready);
  kit.wait();
}

}  // namespace wattwire::http
