// The part of CUDA that the engine uses, on the CPU: each CUDA thread is a thread of the process,
// and the thread blocks run one after another. It tests a kernel where there is no GPU; it says
// nothing about the driver, or about time.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __launch_bounds__(threads)
#define __shared__ static __attribute__((section("cuda_shared")))
#define CUDART_VERSION 13000

extern "C" char __start_cuda_shared[], __stop_cuda_shared[];  // by the linker

struct uint4 {
  uint32_t x, y, z, w;
};

inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, unsigned bits) {
  return high << bits | low >> (32 - bits);
}

struct Index {
  unsigned x;
};

inline thread_local Index blockIdx, threadIdx;
inline std::barrier<> *block_barrier;

inline void __syncthreads() { block_barrier->arrive_and_wait(); }

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum { cudaStreamNonBlocking, cudaHostAllocMapped };
using cudaStream_t = void *;

struct cudaDeviceProp {
  char name[256];
};

inline const char *cudaGetErrorString(cudaError_t) { return "no memory"; }
inline const char *cudaGetErrorName(cudaError_t) { return "cudaErrorMemoryAllocation"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, int) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
  std::snprintf(properties->name, sizeof properties->name, "the CPU");
  return cudaSuccess;
}

inline cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

inline cudaError_t cudaHostAlloc(void **memory, size_t bytes, int) {
  *memory = std::aligned_alloc(16, bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

inline cudaError_t cudaHostGetDevicePointer(void **address, void *memory, int) {
  *address = memory;
  return cudaSuccess;
}

template <typename Symbol>
cudaError_t cudaMemcpyToSymbol(Symbol &symbol, const void *data, size_t bytes) {
  std::memcpy(symbol, data, bytes);
  return cudaSuccess;
}

// What the test writes in place of kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...).
// Shared memory is undefined when a thread block starts.
template <typename Kernel, typename... Arguments>
void launch(Kernel kernel, unsigned blocks, unsigned threads, size_t, cudaStream_t,
            Arguments... arguments) {
  for (unsigned block = 0; block < blocks; ++block) {
    std::memset(__start_cuda_shared, 0xA5,
                static_cast<size_t>(__stop_cuda_shared - __start_cuda_shared));
    std::barrier<> barrier(threads);
    block_barrier = &barrier;
    std::vector<std::jthread> running;
    for (unsigned thread = 0; thread < threads; ++thread)
      running.emplace_back([=] {
        blockIdx.x = block, threadIdx.x = thread;
        kernel(arguments...);
      });
  }
}
