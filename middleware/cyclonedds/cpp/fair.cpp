// The documented loop of libddsc with the contract's work per message: `pong` or `ping DOMAIN BYTES
// COUNT`, on loopback, with the types, QoS and wait set of the cell. Pong prints its domain and
// answers until it is ended; ping prints the median round trip in ns. Waits are limited, as the
// contract demands (C-12, C-15). With BARE_TLS = "AUTHORITY CERTIFICATE KEY GOVERNANCE PERMISSIONS"
// (paths of files), both use DDS Security.
#include <dds/dds.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "contract_work.h"
#include "wattwire.h"

namespace {

const char kConfigurationBegin[] =
    "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/>"
    "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Peers>"
    "<Peer Address=\"127.0.0.1\"/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>";
const char kConfigurationEnd[] = "</Domain></CycloneDDS>";
constexpr dds_duration_t kServerWait = DDS_MSECS(100), kCallTimeout = DDS_SECS(2);
constexpr uint32_t kClient = 2;
constexpr int kTakeMax = 32;

// Returns the plug-ins and credentials of DDS Security; empty without BARE_TLS.
std::string security() {
  const char* files = std::getenv("BARE_TLS");
  const char* plugins = std::getenv("WATTWIRE_CYCLONEDDS_PLUGINS");
  if (files == nullptr || plugins == nullptr) return "";
  std::string authority, certificate, key, governance, permissions;
  std::istringstream(files) >> authority >> certificate >> key >> governance >> permissions;
  auto plugin = [&](const std::string& name, const std::string& function) {
    return "<Library path=\"" + (plugins + ("/libdds_security_" + name)) +
           ".so\" initFunction=\"init_" + function + "\" finalizeFunction=\"finalize_" + function +
           "\"/>";
  };
  auto file = [](const std::string& name, const std::string& path) {
    return "<" + name + ">file:" + path + "</" + name + ">";
  };
  return "<Security><Authentication>" + plugin("auth", "authentication") +
         file("IdentityCA", authority) + file("IdentityCertificate", certificate) +
         file("PrivateKey", key) + "</Authentication><AccessControl>" +
         plugin("ac", "access_control") + file("PermissionsCA", authority) +
         file("Governance", governance) + file("Permissions", permissions) +
         "</AccessControl><Cryptographic>" + plugin("crypto", "crypto") +
         "</Cryptographic></Security>";
}

struct Side {
  dds_entity_t writer, reader, unread, waitset;

  Side(dds_domainid_t domain, const char* own, const char* other) {
    dds_create_domain(domain, (kConfigurationBegin + security() + kConfigurationEnd).c_str());
    const dds_entity_t participant = dds_create_participant(domain, nullptr, nullptr);
    dds_qos_t* qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_MSECS(100));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 1);
    auto topic = [&](const char* name) {
      return dds_create_topic(participant, &wattwire_BytesCall_desc, name, nullptr, nullptr);
    };
    writer = dds_create_writer(participant, topic(own), qos, nullptr);
    reader = dds_create_reader(participant, topic(other), qos, nullptr);
    dds_delete_qos(qos);
    unread = dds_create_readcondition(reader, DDS_ANY_STATE);
    waitset = dds_create_waitset(participant);
    if (participant < 0 || writer < 0 || reader < 0 || dds_waitset_attach(waitset, unread, 0) != 0)
      std::exit(4);
  }

  template <class Take>
  void take(dds_duration_t timeout, Take take_one) {
    dds_waitset_wait(waitset, nullptr, 0, timeout);
    void* samples[kTakeMax] = {};
    dds_sample_info_t infos[kTakeMax];
    const dds_return_t count = dds_take(unread, samples, infos, kTakeMax, kTakeMax);
    for (dds_return_t at = 0; at < count; ++at)
      if (infos[at].valid_data) take_one(*static_cast<const wattwire_BytesCall*>(samples[at]));
    if (count > 0) dds_return_loan(unread, samples, count);
  }
};

[[noreturn]] void pong() {
  const dds_domainid_t domain = 101 + static_cast<dds_domainid_t>(getpid()) % 100;
  Side side(domain, "wattwire_bare_reply", "wattwire_bare_request");
  std::printf("%u\n", domain);
  std::fflush(stdout);
  for (;;)
    side.take(kServerWait, [&](const wattwire_BytesCall& request) {
      const int64_t begin_ns = now_ns();
      uint64_t seq;
      if (!is_valid(request.body.data._buffer, request.body.data._length, request.body.data._length,
                    &seq))
        std::exit(1);
      dds_write(side.writer, &request);
      keep_record(seq, UNKNOWN_NS, begin_ns, now_ns(), request.body.data._length);
    });
}

// Returns the round trip in ns, or a negative number if no valid reply arrived in time.
int64_t call(Side& side, std::vector<uint8_t>& payload, uint64_t number, dds_duration_t timeout) {
  const uint32_t size = static_cast<uint32_t>(payload.size());
  const int64_t begin_ns = now_ns();
  stamp(payload.data(), size, number, begin_ns);
  const wattwire_BytesCall request = {{kClient, number}, {{size, size, payload.data(), false}}};
  if (dds_write(side.writer, &request) != DDS_RETCODE_OK) return -1;
  int64_t duration_ns = -1;
  for (int64_t left_ns; duration_ns < 0 && (left_ns = begin_ns + timeout - now_ns()) > 0;)
    side.take(left_ns, [&](const wattwire_BytesCall& reply) {
      if (reply.call.client != kClient || reply.call.number != number) return;
      const int64_t end_ns = now_ns();
      uint64_t seq;
      if (!is_valid(reply.body.data._buffer, reply.body.data._length, size, &seq) || seq != number)
        std::exit(1);
      keep_record(seq, begin_ns, begin_ns, end_ns, size);
      duration_ns = end_ns - begin_ns;
    });
  return duration_ns;
}

int ping(dds_domainid_t domain, size_t bytes, size_t count) {
  Side side(domain, "wattwire_bare_request", "wattwire_bare_reply");
  std::vector<uint8_t> payload(bytes);
  uint64_t number = 0;
  // The other side does not answer until it has discovered this side.
  while (call(side, payload, number, kCallTimeout / 20) < 0)
    if (++number == 200) return 1;
  std::vector<int64_t> durations_ns;
  durations_ns.reserve(count);
  for (number = 1000; durations_ns.size() < count; ++number) {
    durations_ns.push_back(call(side, payload, number, kCallTimeout));
    if (durations_ns.back() < 0) return 1;
  }
  print_median(durations_ns.data(), count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !begin_work()) return 2;
  if (std::strcmp(argv[1], "pong") == 0) pong();
  if (argc != 5) return 2;
  return ping(static_cast<dds_domainid_t>(std::atoi(argv[2])),
              static_cast<size_t>(std::atol(argv[3])), static_cast<size_t>(std::atol(argv[4])));
}
