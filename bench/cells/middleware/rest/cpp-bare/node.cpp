// `node HOST PORT WARM CALLS`: calls per second of a loop on cpp-httplib, without a kit.
#include <httplib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

const std::string kText = "Hello World";

void call(httplib::Client* client) {
  const auto reply = client->Post("/echo", kText, "text/plain; charset=utf-8");
  if (reply && reply->status == 200 && reply->body == kText) return;
  const std::string why = reply ? reply->body : httplib::to_string(reply.error());
  std::fprintf(stderr, "found %s, not %s\n", why.c_str(), kText.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  httplib::Client client(argv[1], std::atoi(argv[2]));
  const int warm = std::atoi(argv[3]), calls = std::atoi(argv[4]);
  call(&client);
  std::puts("begun");
  std::fflush(stdout);
  for (int made = 0; made < warm; ++made) call(&client);
  const auto start = std::chrono::steady_clock::now();
  std::puts("warm");
  std::fflush(stdout);
  for (int made = 0; made < calls; ++made) call(&client);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%f\n", calls / taken.count());
}
