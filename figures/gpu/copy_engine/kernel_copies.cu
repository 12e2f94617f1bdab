// Copies between a GPU and the host by a kernel (SM), beside those of the copy
// engines (CE): how fast they are, what they cost a product of matrices and a
// kernel that only reads and writes memory, and what they keep waiting. No METS
// in it. On a machine with a GPU:
//
//     nvcc -O2 -std=c++17 -arch=native kernel_copies.cu -lcuda -lcublas
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kAll = 256 * kMiB;
constexpr size_t kMapped = 32 * kMiB;
constexpr int kSide = 8192;  // Of the matrices.
constexpr size_t kMatrix = 4ul * kSide * kSide;
constexpr int kUnroll = 8;

#define CHECK(call)                                              \
  do {                                                           \
    const int result = static_cast<int>(call);                   \
    if (result != 0) {                                           \
      std::fprintf(stderr, "%s: error %d\n", #call, result);     \
      std::exit(1);                                              \
    }                                                            \
  } while (0)

double Now() {  // Microseconds.
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

__global__ void __launch_bounds__(512)
    CopyKernel(uint4* to, const uint4* from, size_t count) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < count; i += kUnroll * stride) {
    uint4 words[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) words[k] = __ldcs(from + i + k * stride);
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) __stcs(to + i + k * stride, words[k]);
  }
  for (; i < count; i += stride) to[i] = from[i];
}

char *device_from, *device_to, *host_to, *host_from;
cudaStream_t out_stream, in_stream, work_stream;

// By so many blocks of a kernel; 0: by a copy engine.
void Copy(bool out, int blocks, size_t size = kAll) {
  char* to = out ? host_to : device_to;
  char* from = out ? device_from : host_from;
  const cudaStream_t stream = out ? out_stream : in_stream;
  if (blocks == 0) {
    CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream));
  } else {
    CopyKernel<<<blocks, 512, 0, stream>>>(reinterpret_cast<uint4*>(to),
                                           reinterpret_cast<uint4*>(from),
                                           size / sizeof(uint4));
  }
}

struct Way {
  const char* name;
  bool out, in;
};
constexpr Way kWays[] = {
    {"out", true, false}, {"in", false, true}, {"both", true, true}};

std::string Name(int blocks) {
  return blocks == 0 ? "CE" : "SM " + std::to_string(blocks) + " blocks";
}

void MeasureAlone(int blocks) {
  std::printf("%s:", Name(blocks).c_str());
  for (const Way& way : kWays) {
    const auto copy = [&] {
      if (way.out) Copy(true, blocks);
      if (way.in) Copy(false, blocks);
    };
    copy();
    CHECK(cudaDeviceSynchronize());
    const double begin = Now();
    for (int i = 0; i < 4; ++i) copy();
    CHECK(cudaDeviceSynchronize());
    std::printf(" %s %.1f", way.name,
                4e-3 * kAll * (way.out + way.in) / (Now() - begin));
  }
  std::printf(" GB/s\n");
}

void MeasureBeside(const char* name, const std::function<void()>& work,
                   int blocks, double alone) {
  for (const Way& way : kWays) {
    std::atomic<bool> stop{false};
    std::atomic<size_t> moved{0};
    const auto loop = [&](bool out) {
      while (!stop) {
        Copy(out, blocks);
        CHECK(cudaStreamSynchronize(out ? out_stream : in_stream));
        moved += kAll;
      }
    };
    std::thread outs([&] { if (way.out) loop(true); });
    std::thread ins([&] { if (way.in) loop(false); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const size_t before = moved;
    const double begin = Now();
    work();
    CHECK(cudaStreamSynchronize(work_stream));
    const double took = Now() - begin;
    std::printf("%s beside %s %s: %.3f of its time alone, %.1f GB/s\n", name,
                Name(blocks).c_str(), way.name, took / alone,
                1e-3 * (moved - before) / took);
    stop = true;
    outs.join();
    ins.join();
  }
}

void MeasureWork(const char* name, const std::function<void()>& work) {
  work();
  CHECK(cudaDeviceSynchronize());
  const double begin = Now();
  work();
  CHECK(cudaDeviceSynchronize());
  const double alone = Now() - begin;
  for (int blocks : {0, 4, 8, 16, 32}) MeasureBeside(name, work, blocks, alone);
}

// What 4 bytes of another stream, and a mapping, wait for beside both ways.
void MeasureWaits(int blocks) {
  char* word;
  cudaStream_t stream;
  CHECK(cudaMallocHost(&word, 4096));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUmemAccessDesc access{prop.location,
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle memory;
  CUdeviceptr range;
  CHECK(cuMemCreate(&memory, kMapped, &prop, 0));
  CHECK(cuMemAddressReserve(&range, kMapped, 0, 0, 0));
  std::atomic<bool> done{false};
  std::thread copier([&] {
    for (int i = 0; i < 40; ++i) {
      Copy(true, blocks);
      Copy(false, blocks);
      CHECK(cudaStreamSynchronize(out_stream));
      CHECK(cudaStreamSynchronize(in_stream));
    }
    done = true;
  });
  double sum[3] = {}, most[3] = {};
  int rounds = 0;
  for (; !done; ++rounds) {
    const std::function<void()> waits[] = {
        [&] {
          CHECK(cudaMemcpyAsync(word, device_from, 4, cudaMemcpyDefault,
                                stream));
          CHECK(cudaStreamSynchronize(stream));
        },
        [&] {
          CHECK(cudaMemcpyAsync(device_from, word, 4, cudaMemcpyDefault,
                                stream));
          CHECK(cudaStreamSynchronize(stream));
        },
        [&] {
          CHECK(cuMemMap(range, kMapped, 0, memory, 0));
          CHECK(cuMemSetAccess(range, kMapped, &access, 1));
        }};
    for (int i = 0; i < 3; ++i) {
      const double begin = Now();
      waits[i]();
      sum[i] += Now() - begin;
      most[i] = std::max(most[i], Now() - begin);
    }
    CHECK(cuMemUnmap(range, kMapped));
  }
  copier.join();
  std::printf("beside %s both ways: 4 bytes out %.0f us (most %.0f), in %.0f "
              "(most %.0f), mapping %.0f us (most %.0f)\n",
              Name(blocks).c_str(), sum[0] / rounds, most[0], sum[1] / rounds,
              most[1], sum[2] / rounds, most[2]);
}

}  // namespace

int main() {
  CHECK(cudaMalloc(&device_from, kAll));
  CHECK(cudaMalloc(&device_to, kAll));
  CHECK(cudaMallocHost(&host_to, kAll));
  CHECK(cudaMallocHost(&host_from, kAll));
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (cudaStream_t* stream : {&out_stream, &in_stream}) {
    CHECK(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking,
                                       greatest));
  }
  CHECK(cudaStreamCreateWithPriority(&work_stream, cudaStreamNonBlocking,
                                     least));
  for (int blocks : {2, 4, 8, 16, 32, 64, 0}) MeasureAlone(blocks);

  float *a, *b, *c;
  for (float** matrix : {&a, &b, &c}) {
    CHECK(cudaMalloc(matrix, kMatrix));
    CHECK(cudaMemset(*matrix, 0, kMatrix));
  }
  cublasHandle_t blas;
  CHECK(cublasCreate(&blas));
  CHECK(cublasSetStream(blas, work_stream));
  CHECK(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH));
  const float one = 1, zero = 0;
  MeasureWork("gemm tf32", [&] {
    for (int i = 0; i < 20; ++i) {
      CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide,
                        &one, a, kSide, b, kSide, &zero, c, kSide));
    }
  });
  MeasureWork("memory-bound", [&] {
    for (int i = 0; i < 200; ++i) {
      CopyKernel<<<1056, 512, 0, work_stream>>>(
          reinterpret_cast<uint4*>(c), reinterpret_cast<const uint4*>(a),
          kMatrix / sizeof(uint4));
    }
  });
  for (int blocks : {0, 16}) MeasureWaits(blocks);
}
