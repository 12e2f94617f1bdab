// cudaMallocAsync: a pool of the NVIDIA driver that keeps what it has had. All
// calls are on one stream, the legacy default stream. The driver is loaded at
// run time.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/benchmarks/compare/replay.h"

namespace mets::compare {
namespace {

[[noreturn]] void Die(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(2);
}

#define METS_COMPARE_CALLS(X) \
  X(cuInit)                   \
  X(cuDeviceGet)              \
  X(cuDevicePrimaryCtxRetain) \
  X(cuCtxSetCurrent)          \
  X(cuGetErrorName)           \
  X(cuMemPoolCreate)          \
  X(cuMemPoolDestroy)         \
  X(cuMemPoolSetAttribute)    \
  X(cuMemPoolGetAttribute)    \
  X(cuMemAllocFromPoolAsync)  \
  X(cuMemFreeAsync)           \
  X(cuStreamSynchronize)

struct Driver {
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) Die("this machine has no NVIDIA driver", dlerror());
#define METS_COMPARE_LOAD(call)                                      \
  call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call)); \
  if (call == nullptr) Die("the NVIDIA driver is too old", dlerror());
    METS_COMPARE_CALLS(METS_COMPARE_LOAD)
#undef METS_COMPARE_LOAD
    Check(cuInit(0), "cuInit");
    CUdevice device;
    Check(cuDeviceGet(&device, 0), "cuDeviceGet");
    Check(cuDevicePrimaryCtxRetain(&context, device),
          "cuDevicePrimaryCtxRetain");
  }

  void Check(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = "an unknown error";
    cuGetErrorName(result, &name);
    Die(call, name);
  }

#define METS_COMPARE_MEMBER(call) decltype(&::call) call;
  METS_COMPARE_CALLS(METS_COMPARE_MEMBER)
#undef METS_COMPARE_MEMBER
  CUcontext context = nullptr;  // Until the process ends.
};

// The driver, with its context in the calling thread.
const Driver& Cuda() {
  static const Driver driver;
  thread_local const CUresult current = driver.cuCtxSetCurrent(driver.context);
  driver.Check(current, "cuCtxSetCurrent");
  return driver;
}

class CudaAsync : public Allocator {
 public:
  explicit CudaAsync(int64_t pool_bytes) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    props.maxSize = pool_bytes;  // 0: no limit.
    Cuda().Check(Cuda().cuMemPoolCreate(&pool_, &props), "cuMemPoolCreate");
    uint64_t keep = UINT64_MAX;
    Cuda().Check(Cuda().cuMemPoolSetAttribute(
                     pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                 "cuMemPoolSetAttribute");
  }
  ~CudaAsync() override {
    Cuda().cuStreamSynchronize(CU_STREAM_LEGACY);
    Cuda().cuMemPoolDestroy(pool_);
  }

  void* Allocate(size_t bytes) override {
    CUdeviceptr address = 0;
    const CUresult result = Cuda().cuMemAllocFromPoolAsync(
        &address, bytes, pool_, CU_STREAM_LEGACY);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    Cuda().Check(result, "cuMemAllocFromPoolAsync");
    return reinterpret_cast<void*>(address);
  }
  void Free(void* address, size_t) override {
    Cuda().Check(Cuda().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(address),
                                       CU_STREAM_LEGACY),
                 "cuMemFreeAsync");
  }
  int64_t held_bytes() override {
    uint64_t bytes = 0;
    Cuda().Check(Cuda().cuMemPoolGetAttribute(
                     pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes),
                 "cuMemPoolGetAttribute");
    return bytes;
  }

 private:
  CUmemoryPool pool_ = nullptr;
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main<mets::compare::CudaAsync>(argc, argv);
}
