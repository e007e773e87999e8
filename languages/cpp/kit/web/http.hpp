// cpp-httplib under cells whose calls are HTTP POSTs. kit.hpp does not include this page.
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

inline const std::map<std::string, Type> kSettings = {{"keep_alive", Type::kString},
                                                      {"tcp_nodelay", Type::kString},
                                                      {"tls", Type::kBoolean},
                                                      {"server_workers", Type::kInteger}};

inline bool asks(const Kit& kit, const std::string& setting) {
  return kit.string("settings." + setting) == "on";
}

// What was asked of the last socket and of the last handshake, for READY.
class Found {
 public:
  // Leaves the socket as the library would: its own default is a function of options, too.
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

  Ready ready(const Kit& kit) const {
    Ready ready;
    ready.library = {"cpp-httplib", CPPHTTPLIB_VERSION,
                     "gcc " __VERSION__ ", " OPENSSL_VERSION_TEXT};
    ready.guarantee = {"reliable", "none", "block"};
    ready.effective["tcp_nodelay"] = nodelay_.load();
    ready.effective["tls"] = tls_.load();
    ready.effective["server_workers"] = kit.integer("settings.server_workers");
    ready.effective["http_version"] = "1.1";
    ready.effective["transport"] = "tcp/ipv4";
    return ready;
  }

 private:
  std::atomic<bool> nodelay_{false};
  std::atomic<const char*> tls_{"none"};
};

// One connection, or one a call where it is not kept. Not for several threads.
class Client {
 public:
  // `url` is an entry of peers.endpoints, as http://127.0.0.1:8080/echo.
  Client(const Kit& kit, const std::string& url)
      : path_(url.substr(std::min(url.find('/', url.find("//") + 2), url.size()))),
        client_(url.substr(0, url.size() - path_.size())) {
    if (path_.empty() || !client_.is_valid())
      throw BadSpec("peers.endpoints", url, "as http://127.0.0.1:8080/echo");
    if (kit.string("settings.tcp_nodelay") != "default")
      client_.set_tcp_nodelay(asks(kit, "tcp_nodelay"));
    client_.set_keep_alive(asks(kit, "keep_alive"));  // off by itself
    client_.set_socket_options(found_.options(false));
    const std::string& authority = kit.string("tls.authority");
    if (authority.empty()) return;
    client_.set_ca_cert_path(authority);
    SSL_CTX_set_app_data(client_.ssl_context(), &found_);
    SSL_CTX_set_info_callback(client_.ssl_context(), [](const SSL* ssl, int where, int) {
      if ((where & SSL_CB_HANDSHAKE_DONE) == 0) return;
      static_cast<Found*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))->see(ssl);
    });
  }

  // The response's body until the next call; nothing at the timeout. Throws SendFailed where the
  // call failed (C-36), and MiddlewareFailed for what TLS does not trust.
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
    Ready ready = found_.ready(kit);
    ready.effective["keep_alive"] = asks(kit, "keep_alive") ? "on" : "off";
    ready.matched = 1;
    return ready;
  }

 private:
  std::string distrust() const {
    const long found = client_.get_openssl_verify_result();
    return found == X509_V_OK ? "the certificate is not of this host"
                              : X509_verify_cert_error_string(found);
  }

  Found found_;
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

// A server whose POSTs to `path` are answered by `answer(request, response)`, in the threads of
// the library's pool, until the drain is over. `also` goes into READY's `effective`.
template <class Answer>
void serve(Kit& kit, const std::string& path, Answer answer,
           const std::map<std::string, Scalar>& also = {}) {
  // Never destroyed: its threads live until the process ends.
  auto& found = *new Found;
  httplib::Server& server = *open_server(kit).release();
  if (kit.string("settings.tcp_nodelay") != "default")
    server.set_tcp_nodelay(asks(kit, "tcp_nodelay"));
  // Where connections are to be kept, the library's limit of 5 requests would cut them off.
  const size_t requests_max = asks(kit, "keep_alive") ? INT32_MAX : CPPHTTPLIB_KEEPALIVE_MAX_COUNT;
  server.set_keep_alive_max_count(requests_max);
  server.set_socket_options(found.options(true));
  int64_t workers = kit.integer("settings.server_workers", 0, 4096);
  if (workers == 0) workers = static_cast<int64_t>(CPPHTTPLIB_THREAD_POOL_COUNT);
  server.new_task_queue = [workers] {
    return new httplib::ThreadPool(static_cast<size_t>(workers));
  };
  server.Post(path, answer);
  // Called when the response was written, in the thread that wrote it.
  server.set_logger([&kit](const httplib::Request&, const httplib::Response&) { kit.served(); });
  const int port = server.bind_to_any_port("127.0.0.1");
  if (port < 0) throw MiddlewareFailed(std::string("bind 127.0.0.1: ") + std::strerror(errno));
  std::thread([&server] { server.listen_after_bind(); }).detach();
  const bool tls = !kit.string("tls.authority").empty();
  if (tls) found.see("up to TLSv1.3");
  kit.listening({(tls ? "https" : "http") + ("://127.0.0.1:" + std::to_string(port)) + path});
  Ready ready = found.ready(kit);
  ready.effective["server"] = "cpp-httplib/" CPPHTTPLIB_VERSION;
  ready.effective["server_workers"] = workers;
  ready.effective["keep_alive"] = "on";
  ready.effective["keep_alive_requests_max"] = requests_max;
  for (const auto& [name, value] : also) ready.effective[name] = value;
  kit.ready(ready);
  kit.wait();
}

}  // namespace wattwire::http
