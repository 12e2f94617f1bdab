// CudaApi: the functions of the NVIDIA driver that METS uses.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_API_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_API_H_

#include <cuda.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The second version is only in drivers of CUDA 12.8 and later.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float* milliseconds,
                                               CUevent start, CUevent end);

namespace mets {

// The status of `call`: OK, or an error with the call's and the result's name.
// CUDA_ERROR_OUT_OF_MEMORY → RESOURCE_EXHAUSTED; INVALID_VALUE, INVALID_HANDLE,
// INVALID_DEVICE → INVALID_ARGUMENT; NO_DEVICE → NOT_FOUND; NOT_SUPPORTED →
// UNIMPLEMENTED; NOT_PERMITTED → PERMISSION_DENIED; what says that the driver
// cannot be used as it is (not initialised, going down, versions that do not
// match) → FAILED_PRECONDITION; all else → INTERNAL.
absl::Status CudaStatus(CUresult result, const char* call);

// One function of the driver: its address and name.
template <typename F>
struct CudaFunction;
template <typename... A>
struct CudaFunction<CUresult(A...)> {
  const char* name;
  CUresult (*call)(A...) = nullptr;

  absl::Status operator()(A... arguments) const {
    return CudaStatus(call(arguments...), name);
  }
};

// The table of what is used. Names as in cuda.h, whose macros turn them into
// the version that it declares (cuMemHostRegister_v2).
#define METS_CUDA_FUNCTIONS(X)         \
  X(cuInit)                            \
  X(cuDeviceGetCount)                  \
  X(cuDeviceGet)                       \
  X(cuDeviceGetName)                   \
  X(cuDeviceGetUuid)                   \
  X(cuDeviceTotalMem)                  \
  X(cuDeviceGetAttribute)              \
  X(cuDevicePrimaryCtxRetain)          \
  X(cuDevicePrimaryCtxRelease)         \
  X(cuCtxPushCurrent)                  \
  X(cuCtxPopCurrent)                   \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuMemGetAllocationGranularity)     \
  X(cuMemCreate)                       \
  X(cuMemRelease)                      \
  X(cuMemExportToShareableHandle)      \
  X(cuMemImportFromShareableHandle)    \
  X(cuMemAddressReserve)               \
  X(cuMemAddressFree)                  \
  X(cuMemMap)                          \
  X(cuMemUnmap)                        \
  X(cuMemSetAccess)                    \
  X(cuMemAlloc)                        \
  X(cuMemFree)                         \
  X(cuMemAllocAsync)                   \
  X(cuMemFreeAsync)                    \
  X(cuMemHostAlloc)                    \
  X(cuMemFreeHost)                     \
  X(cuMemHostRegister)                 \
  X(cuMemHostUnregister)               \
  X(cuMemcpyHtoDAsync)                 \
  X(cuMemcpyDtoHAsync)                 \
  X(cuStreamCreate)                    \
  X(cuStreamDestroy)                   \
  X(cuStreamSynchronize)               \
  X(cuStreamQuery)                     \
  X(cuStreamIsCapturing)               \
  X(cuStreamWaitEvent)                 \
  X(cuEventCreate)                     \
  X(cuEventDestroy)                    \
  X(cuEventRecord)                     \
  X(cuEventQuery)                      \
  X(cuEventElapsedTime)

#define METS_CUDA_TEXT_INNER(name) #name
#define METS_CUDA_TEXT(name) METS_CUDA_TEXT_INNER(name)

// Function pointers, so that nothing links the driver and tests can give
// others. A member is called like the function and returns a status; the plain
// result comes from `member.call(…)`.
struct CudaApi {
#define METS_CUDA_MEMBER(name) \
  CudaFunction<decltype(::name)> name{METS_CUDA_TEXT(name)};
  METS_CUDA_FUNCTIONS(METS_CUDA_MEMBER)
#undef METS_CUDA_MEMBER
};

// Loads libcuda.so.1 and initialises it, once in the process. Makes no context.
// NOT_FOUND when this machine has no NVIDIA driver or no device,
// FAILED_PRECONDITION when the driver is too old; the text says which.
absl::StatusOr<const CudaApi*> LoadCudaApi();

// Fills `api` from the library `file`; errors as LoadCudaApi's.
absl::Status LoadCudaFunctions(const char* file, CudaApi* api);

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_API_H_
