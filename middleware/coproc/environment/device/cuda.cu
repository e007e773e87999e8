// AES-128 (FIPS 197) by a CUDA kernel on the first GPU, with one launch per piece. The host expands
// the key. A thread encrypts a block, with the table of rounds in shared memory. The GPU reads and
// writes pinned memory of the host, because copies would add two commands to each piece.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "engine.h"
}

#include "aes.h"

namespace {

constexpr unsigned kTableWords = 256;
constexpr unsigned kThreads = 128;
constexpr size_t kBlockBytes = 16;
constexpr size_t kBlocksMax = 4096;  // of a launch; a datagram holds no more

struct RoundKeys {
  uint32_t words[ROUND_KEY_WORDS];
};

uint8_t substitution[256];
uint8_t *host_blocks;  // pinned; the GPU has its own address for it
uint4 *device_blocks;
cudaStream_t stream;
cudaDeviceProp properties;

__device__ uint32_t rounds_table[kTableWords];

__device__ uint32_t mixed(const uint32_t *table, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const uint32_t second = table[b >> 8 & 0xFF], third = table[c >> 16 & 0xFF];
  const uint32_t fourth = table[d >> 24];
  return table[a & 0xFF] ^ __funnelshift_l(second, second, 8) ^ __funnelshift_l(third, third, 16) ^
         __funnelshift_l(fourth, fourth, 24);
}

// The last round has no MixColumns: bytes 1 and 2 of the table are the S-box.
__device__ uint32_t last(const uint32_t *table, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (table[a & 0xFF] >> 8 & 0xFF) | (table[b >> 8 & 0xFF] & 0xFF00) |
         (table[c >> 16 & 0xFF] & 0xFF0000) | (table[d >> 24] << 8 & 0xFF000000);
}

__global__ void __launch_bounds__(kThreads)
    encrypt(const RoundKeys keys, uint4 *blocks, unsigned count) {
  __shared__ uint32_t table[kTableWords];
  const unsigned at = blockIdx.x * kThreads + threadIdx.x;
  // The block is on its way from the host while the threads copy the table.
  const uint4 block = at < count ? blocks[at] : make_uint4(0, 0, 0, 0);
  for (unsigned word = threadIdx.x; word < kTableWords; word += kThreads)
    table[word] = rounds_table[word];
  __syncthreads();
  if (at >= count) return;
  const uint32_t *words = keys.words;
  uint32_t a = block.x ^ words[0], b = block.y ^ words[1];
  uint32_t c = block.z ^ words[2], d = block.w ^ words[3];
#pragma unroll
  for (unsigned round = 1; round < ROUNDS; ++round) {
    words += WORDS;
    const uint32_t next_a = mixed(table, a, b, c, d) ^ words[0];
    const uint32_t next_b = mixed(table, b, c, d, a) ^ words[1];
    const uint32_t next_c = mixed(table, c, d, a, b) ^ words[2];
    const uint32_t next_d = mixed(table, d, a, b, c) ^ words[3];
    a = next_a, b = next_b, c = next_c, d = next_d;
  }
  words += WORDS;
  blocks[at] = make_uint4(last(table, a, b, c, d) ^ words[0], last(table, b, c, d, a) ^ words[1],
                          last(table, c, d, a, b) ^ words[2], last(table, d, a, b, c) ^ words[3]);
}

void check(cudaError_t error, const char *call) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s (%s); this device needs an NVIDIA GPU and a driver for CUDA %d.%d\n",
          call, cudaGetErrorString(error), cudaGetErrorName(error), CUDART_VERSION / 1000,
          CUDART_VERSION % 1000 / 10);
  exit(1);
}

}  // namespace

void engine_start(void) {
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  void *memory = nullptr, *address = nullptr;
  check(cudaHostAlloc(&memory, kBlocksMax * kBlockBytes, cudaHostAllocMapped), "cudaHostAlloc");
  check(cudaHostGetDevicePointer(&address, memory, 0), "cudaHostGetDevicePointer");
  host_blocks = static_cast<uint8_t *>(memory);
  device_blocks = static_cast<uint4 *>(address);
  uint32_t table[kTableWords];
  make_tables(substitution, table);
  check(cudaMemcpyToSymbol(rounds_table, table, sizeof table), "cudaMemcpyToSymbol");
  // CUDA loads a kernel when it is first launched, which must not happen during a call.
  const uint8_t key[16] = {};
  uint8_t block[kBlockBytes] = {};
  engine_encrypt(key, block, 1);
}

void engine_encrypt(const uint8_t key[16], uint8_t *blocks, size_t count) {
  RoundKeys keys;
  expand(substitution, key, keys.words);
  while (count > 0) {
    const auto part = static_cast<unsigned>(std::min(count, kBlocksMax));
    std::memcpy(host_blocks, blocks, part * kBlockBytes);
    encrypt<<<(part + kThreads - 1) / kThreads, kThreads, 0, stream>>>(keys, device_blocks, part);
    check(cudaGetLastError(), "the launch of the kernel");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    std::memcpy(blocks, host_blocks, part * kBlockBytes);
    blocks += part * kBlockBytes;
    count -= part;
  }
}

const char *engine_description(void) {
  static char text[512];
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  snprintf(text, sizeof text, "AES-128 in CUDA on %s\tCUDA %d.%d, driver for CUDA %d.%d",
           properties.name, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, driver / 1000,
           driver % 1000 / 10);
  return text;
}
