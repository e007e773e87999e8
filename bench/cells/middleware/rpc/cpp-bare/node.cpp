// `node HOST PORT WARM CALLS`: calls per second of a JSON-RPC loop on cpp-httplib, without a kit.
#include <httplib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

using Json = nlohmann::json;

namespace {

const std::string kText = "Hello World";

void call(httplib::Client* client, int id) {
  const Json request = {
      {"jsonrpc", "2.0"}, {"id", id}, {"method", "echo"}, {"params", Json::array({kText})}};
  const auto reply = client->Post("/rpc", request.dump(), "application/json");
  if (reply && reply->status == 200) {
    Json response = Json::parse(reply->body, nullptr, false);
    if (response.is_object() && response["id"] == id && response["result"] == kText) return;
  }
  const std::string why = reply ? reply->body : httplib::to_string(reply.error());
  std::fprintf(stderr, "found %s, not %s\n", why.c_str(), kText.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  httplib::Client client(argv[1], std::atoi(argv[2]));
  const int warm = std::atoi(argv[3]), calls = std::atoi(argv[4]);
  call(&client, 0);
  std::puts("begun");
  std::fflush(stdout);
  for (int made = 1; made <= warm; ++made) call(&client, made);
  const auto start = std::chrono::steady_clock::now();
  std::puts("warm");
  std::fflush(stdout);
  for (int made = 1; made <= calls; ++made) call(&client, made);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%f\n", calls / taken.count());
}
