// `node HOST PORT WARM CALLS`: calls per second of a loop on a blocking stub, without a kit.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "wattwire.grpc.pb.h"

namespace {

const std::string kText = "Hello World";

void call(wattwire::Calls::Stub* stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  wattwire::TextPayload request, reply;
  request.set_data(kText);
  const grpc::Status status = stub->Text(&context, request, &reply);
  if (status.ok() && reply.data() == kText) return;
  const std::string why = status.ok() ? reply.data() : status.error_message();
  std::fprintf(stderr, "found %s, not %s\n", why.c_str(), kText.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string place = std::string(argv[1]) + ":" + argv[2];
  const int warm = std::atoi(argv[3]), calls = std::atoi(argv[4]);
  const auto stub =
      wattwire::Calls::NewStub(grpc::CreateChannel(place, grpc::InsecureChannelCredentials()));
  call(stub.get());
  std::puts("begun");
  std::fflush(stdout);
  for (int made = 0; made < warm; ++made) call(stub.get());
  const auto start = std::chrono::steady_clock::now();
  std::puts("warm");
  std::fflush(stdout);
  for (int made = 0; made < calls; ++made) call(stub.get());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%f\n", calls / taken.count());
}
