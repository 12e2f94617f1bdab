#include "common/device/cuda/cuda_api.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

struct Meaning {
  CUresult result;
  const char* name;
  absl::StatusCode code;
};

#define METS_CUDA_RESULT(result, code) \
  { result, #result, absl::StatusCode::code }
constexpr Meaning kMeanings[] = {
    METS_CUDA_RESULT(CUDA_ERROR_INVALID_VALUE, kInvalidArgument),
    METS_CUDA_RESULT(CUDA_ERROR_OUT_OF_MEMORY, kResourceExhausted),
    METS_CUDA_RESULT(CUDA_ERROR_NOT_INITIALIZED, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_DEINITIALIZED, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_STUB_LIBRARY, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_DEVICE_UNAVAILABLE, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_NO_DEVICE, kNotFound),
    METS_CUDA_RESULT(CUDA_ERROR_INVALID_DEVICE, kInvalidArgument),
    METS_CUDA_RESULT(CUDA_ERROR_INVALID_CONTEXT, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_MAP_FAILED, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_UNMAP_FAILED, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_ECC_UNCORRECTABLE, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_OPERATING_SYSTEM, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_INVALID_HANDLE, kInvalidArgument),
    METS_CUDA_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_CONTEXT_IS_DESTROYED, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                     kInvalidArgument),
    METS_CUDA_RESULT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, kInvalidArgument),
    METS_CUDA_RESULT(CUDA_ERROR_LAUNCH_FAILED, kInternal),
    METS_CUDA_RESULT(CUDA_ERROR_NOT_PERMITTED, kPermissionDenied),
    METS_CUDA_RESULT(CUDA_ERROR_NOT_SUPPORTED, kUnimplemented),
    METS_CUDA_RESULT(CUDA_ERROR_SYSTEM_NOT_READY, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, kFailedPrecondition),
    METS_CUDA_RESULT(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
                     kFailedPrecondition),
};
#undef METS_CUDA_RESULT

absl::StatusOr<const CudaApi*> Load() {
  CudaApi* api = new CudaApi;  // The driver stays until the process ends.
  METS_RETURN_IF_ERROR(LoadCudaFunctions(kLibrary, api));
  METS_RETURN_IF_ERROR(api->cuInit(0));
  return api;
}

}  // namespace

absl::Status CudaStatus(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result != result) continue;
    return absl::Status(meaning.code, absl::StrCat(call, ": ", meaning.name));
  }
  return absl::InternalError(
      absl::StrCat(call, ": CUDA error ", static_cast<int>(result)));
}

absl::Status LoadCudaFunctions(const char* file, CudaApi* api) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("this machine has no NVIDIA driver: ", dlerror()));
  }
  std::string missing;
  const auto load = [&](auto& function) {
    void* address = dlsym(library, function.name);
    if (address == nullptr) absl::StrAppend(&missing, " ", function.name);
    function.call = reinterpret_cast<decltype(function.call)>(address);
  };
#define METS_CUDA_LOAD(name) load(api->name);
  METS_CUDA_FUNCTIONS(METS_CUDA_LOAD)
#undef METS_CUDA_LOAD
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the NVIDIA driver (", file, ") is too old: it has no", missing));
}

absl::StatusOr<const CudaApi*> LoadCudaApi() {
  static const auto& api = *new absl::StatusOr<const CudaApi*>(Load());
  return api;
}

}  // namespace mets
