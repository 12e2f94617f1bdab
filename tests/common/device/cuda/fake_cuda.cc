#include "tests/common/device/cuda/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/device/cuda/fake_cuda_state.h"

namespace mets::fake_cuda {

State& S() {
  static State& state = *new State;
  return state;
}

CUresult Begin(const char* function) {
  Plan& plan = S().plans[function];
  const auto failure = plan.failures.find(++plan.calls);
  return failure == plan.failures.end() ? CUDA_SUCCESS : failure->second;
}

namespace {

constexpr size_t kTotal = size_t{1} << 30;
constexpr size_t kUnit = size_t{2} << 20;

size_t SizeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
}

bool IsRegistered(const void* address, size_t size) {
  for (const auto& [begin, length] : S().registered) {
    if (address >= begin &&
        static_cast<const char*>(address) + size <= begin + length) {
      return true;
    }
  }
  return false;
}

bool IsAccessible(CUdeviceptr address, size_t size) {
  while (size > 0) {
    auto it = S().mappings.upper_bound(address);
    if (it == S().mappings.begin()) return false;
    --it;
    const CUdeviceptr end = it->first + it->second.size;
    if (address >= end || !it->second.accessible) return false;
    const size_t part = std::min<size_t>(size, end - address);
    address += part;
    size -= part;
  }
  return true;
}

// The mappings that make up exactly [address, address + size).
std::vector<CUdeviceptr> WholeMappings(CUdeviceptr address, size_t size) {
  std::vector<CUdeviceptr> found;
  const CUdeviceptr end = address + size;
  while (address < end) {
    const auto it = S().mappings.find(address);
    if (it == S().mappings.end()) return {};
    found.push_back(address);
    address += it->second.size;
  }
  return address == end ? found : std::vector<CUdeviceptr>();
}

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

// ---- the functions, named as in cuda.h ------------------------------------
namespace functions {
namespace {

CUresult cuInit(unsigned) {
  FAKE_BEGIN(cuInit);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  FAKE_BEGIN(cuDeviceGetCount);
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  FAKE_BEGIN(cuDeviceGet);
  *device = 0;
  return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  FAKE_BEGIN(cuDeviceGetName);
  std::strncpy(name, "Fake", length);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice) {
  FAKE_BEGIN(cuDeviceGetUuid);
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* total, CUdevice) {
  FAKE_BEGIN(cuDeviceTotalMem);
  *total = kTotal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  FAKE_BEGIN(cuDeviceGetAttribute);
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  FAKE_BEGIN(cuDevicePrimaryCtxRetain);
  ++S().contexts;
  *context = &S().context;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  FAKE_BEGIN(cuDevicePrimaryCtxRelease);
  --S().contexts;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext) {
  FAKE_BEGIN(cuCtxPushCurrent);
  ++in_context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext*) {
  FAKE_BEGIN(cuCtxPopCurrent);
  --in_context;
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_BEGIN(cuThreadExchangeStreamCaptureMode);
  static thread_local CUstreamCaptureMode current =
      CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                       const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  FAKE_BEGIN(cuMemGetAllocationGranularity);
  *granularity = kUnit;
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* properties,
                     unsigned long long) {
  FAKE_BEGIN(cuMemCreate);
  if (properties->requestedHandleTypes !=
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const int fd = memfd_create("fake-cuda", 0);
  if (fd < 0 || ftruncate(fd, size) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = S().next_handle++;
  S().chunks[*handle] = fd;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_BEGIN(cuMemRelease);
  const auto it = S().chunks.find(handle);
  if (it == S().chunks.end()) return CUDA_ERROR_INVALID_VALUE;
  close(it->second);
  S().chunks.erase(it);
  return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void* out,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType,
                                      unsigned long long) {
  FAKE_BEGIN(cuMemExportToShareableHandle);
  const int fd = dup(S().chunks.at(handle));
  std::memcpy(out, &fd, sizeof(fd));
  return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* in, CUmemAllocationHandleType) {
  FAKE_BEGIN(cuMemImportFromShareableHandle);
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(in));
  if (SizeOf(fd) == 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = S().next_handle++;
  S().chunks[*handle] = dup(fd);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t,
                             CUdeviceptr, unsigned long long) {
  FAKE_BEGIN(cuMemAddressReserve);
  if (size % kUnit != 0) return CUDA_ERROR_INVALID_VALUE;
  char* base = static_cast<char*>(
      mmap(nullptr, size + kUnit, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t before = kUnit - reinterpret_cast<uintptr_t>(base) % kUnit;
  munmap(base, before);
  if (before < kUnit) munmap(base + before + size, kUnit - before);
  *address = reinterpret_cast<CUdeviceptr>(base + before);
  S().reservations[*address] = size;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  FAKE_BEGIN(cuMemAddressFree);
  const auto it = S().reservations.find(address);
  if (it == S().reservations.end() || it->second != size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto mapped = S().mappings.lower_bound(address);
  if (mapped != S().mappings.end() && mapped->first < address + size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  munmap(Pointer(address), size);
  S().reservations.erase(it);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  FAKE_BEGIN(cuMemMap);
  const auto chunk = S().chunks.find(handle);
  if (chunk == S().chunks.end() || offset != 0 || size % kUnit != 0 ||
      size > SizeOf(chunk->second)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto after = S().mappings.lower_bound(address);
  if (after != S().mappings.end() && after->first < address + size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (after != S().mappings.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.size > address) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  S().mappings[address] = {size, dup(chunk->second)};
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  FAKE_BEGIN(cuMemUnmap);
  const std::vector<CUdeviceptr> whole = WholeMappings(address, size);
  if (whole.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (CUdeviceptr place : whole) {
    close(S().mappings[place].fd);
    S().mappings.erase(place);
  }
  mmap(Pointer(address), size, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t size,
                        const CUmemAccessDesc* access, size_t count) {
  FAKE_BEGIN(cuMemSetAccess);
  const std::vector<CUdeviceptr> whole = WholeMappings(address, size);
  if (whole.empty() || count != 1 ||
      (access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
       access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool writes = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (CUdeviceptr place : whole) {
    Mapping& mapping = S().mappings[place];
    mmap(Pointer(place), mapping.size, PROT_READ | (writes ? PROT_WRITE : 0),
         MAP_SHARED | MAP_FIXED, mapping.fd, 0);
    mapping.accessible = true;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* memory, size_t size) {
  FAKE_BEGIN(cuMemAlloc);
  FAKE_CHECK_CONTEXT();
  *memory = reinterpret_cast<CUdeviceptr>(std::malloc(size));
  S().mappings[*memory] = {size, -1, true};
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr memory) {
  FAKE_BEGIN(cuMemFree);
  if (S().mappings.erase(memory) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(Pointer(memory));
  return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t size, CUstream) {
  FAKE_BEGIN(cuMemAllocAsync);
  return cuMemAlloc(memory, size);
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream) {
  FAKE_BEGIN(cuMemFreeAsync);
  return cuMemFree(memory);
}
CUresult cuMemHostAlloc(void** memory, size_t size, unsigned) {
  FAKE_BEGIN(cuMemHostAlloc);
  FAKE_CHECK_CONTEXT();
  *memory = std::malloc(size);
  S().registered[static_cast<char*>(*memory)] = size;
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  FAKE_BEGIN(cuMemFreeHost);
  if (S().registered.erase(static_cast<char*>(memory)) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* address, size_t size, unsigned) {
  FAKE_BEGIN(cuMemHostRegister);
  FAKE_CHECK_CONTEXT();
  S().registered[static_cast<char*>(address)] = size;
  return CUDA_SUCCESS;
}
CUresult cuMemHostUnregister(void* address) {
  FAKE_BEGIN(cuMemHostUnregister);
  return S().registered.erase(static_cast<char*>(address)) == 1
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size,
                           CUstream stream) {
  FAKE_BEGIN(cuMemcpyHtoDAsync);
  FAKE_CHECK_CONTEXT();
  if (!IsAccessible(to, size) || !IsRegistered(from, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Copy(Pointer(to), from, size, stream);
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size,
                           CUstream stream) {
  FAKE_BEGIN(cuMemcpyDtoHAsync);
  FAKE_CHECK_CONTEXT();
  if (!IsAccessible(from, size) || !IsRegistered(to, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Copy(to, Pointer(from), size, stream);
}
}  // namespace
}  // namespace functions

namespace {

CudaApi MakeApi() {
  CudaApi api;
#define FAKE_ENTRY(name) api.name.call = functions::name;
  METS_CUDA_FUNCTIONS(FAKE_ENTRY)
#undef FAKE_ENTRY
  return api;
}

}  // namespace

const CudaApi& Api() {
  static const CudaApi& api = *new CudaApi(MakeApi());
  return api;
}

void Reset() {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  S().plans.clear();
  S().delay = false;
  S().next_copy = S().context_error = CUDA_SUCCESS;
}

void Fail(const std::string& function, CUresult result, int nth) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  Plan& plan = S().plans[function];
  plan.failures[plan.calls + nth] = result;
}

void FailNextCopy(CUresult result) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  S().next_copy = result;
}

std::string Left() {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  std::string left;
  const auto add = [&left](size_t count, const char* what) {
    if (count > 0) absl::StrAppend(&left, count, " ", what, " ");
  };
  add(S().chunks.size(), "chunks");
  add(S().mappings.size(), "mappings");
  add(S().reservations.size(), "reservations");
  add(S().registered.size(), "registered extents");
  add(S().streams.size(), "streams");
  add(S().events.size(), "events");
  add(S().contexts, "contexts");
  return left;
}

int Calls(const std::string& function) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  return S().plans[function].calls;
}

}  // namespace mets::fake_cuda
