#include "common/device/cuda/nvml.h"

#include <dlfcn.h>

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

// From nvml.h, which not every CUDA installation has.
using NvmlDevice = struct NvmlDeviceStruct*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlProcess {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
};
constexpr unsigned long long kNvmlUnknown = ~0ULL;
// One lane one way, after encoding, by PCIe generation from 1.
constexpr double kLaneBytesPerSecond[] = {0.25e9,  0.5e9,   0.985e9,
                                          1.969e9, 3.938e9, 7.563e9};
constexpr double kReached = 0.87;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlNotFound = 6;

struct Nvml {
  int (*init)();
  int (*device_by_uuid)(const char*, NvmlDevice*);
  int (*memory_info)(NvmlDevice, NvmlMemory*);
  int (*link_generation)(NvmlDevice, unsigned int*);
  int (*link_width)(NvmlDevice, unsigned int*);
  // Null before driver 510.
  int (*processes)(NvmlDevice, unsigned int*, NvmlProcess*);
  const char* (*error_text)(int);

  absl::Status StatusOf(int result, const char* call) const {
    if (result == kNvmlSuccess) return absl::OkStatus();
    const std::string text = absl::StrCat(call, ": ", error_text(result));
    return result == kNvmlNotFound ? absl::NotFoundError(text)
                                   : absl::FailedPreconditionError(text);
  }
};

absl::StatusOr<const Nvml*> LoadNvml() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(dlerror(),
                     "; the device's free memory is not known (in a container, "
                     "NVIDIA_DRIVER_CAPABILITIES must contain 'utility')"));
  }
  Nvml* nvml = new Nvml;  // The library stays until the process ends.
  bool complete = true;
  const auto load = [&](const char* name, auto& function) {
    void* address = dlsym(library, name);
    complete &= address != nullptr;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
  };
  load("nvmlInit_v2", nvml->init);
  load("nvmlDeviceGetHandleByUUID", nvml->device_by_uuid);
  load("nvmlDeviceGetMemoryInfo", nvml->memory_info);
  load("nvmlErrorString", nvml->error_text);
  load("nvmlDeviceGetMaxPcieLinkGeneration", nvml->link_generation);
  load("nvmlDeviceGetMaxPcieLinkWidth", nvml->link_width);
  if (!complete) {
    return absl::FailedPreconditionError("libnvidia-ml.so.1 is too old");
  }
  load("nvmlDeviceGetComputeRunningProcesses_v3", nvml->processes);
  METS_RETURN_IF_ERROR(nvml->StatusOf(nvml->init(), "nvmlInit"));
  return nvml;
}

struct Found {
  const Nvml* nvml;
  NvmlDevice device;
};

absl::StatusOr<Found> Find(const std::string& uuid) {
  static const auto& nvml = *new absl::StatusOr<const Nvml*>(LoadNvml());
  if (!nvml.ok()) return nvml.status();
  Found found = {*nvml, nullptr};
  METS_RETURN_IF_ERROR(found.nvml->StatusOf(
      found.nvml->device_by_uuid(uuid.c_str(), &found.device),
      "nvmlDeviceGetHandleByUUID"));
  return found;
}

}  // namespace

absl::StatusOr<Bytes> FreeCudaMemory(const std::string& uuid) {
  METS_ASSIGN_OR_RETURN(const Found found, Find(uuid));
  NvmlMemory memory;
  METS_RETURN_IF_ERROR(
      found.nvml->StatusOf(found.nvml->memory_info(found.device, &memory),
                           "nvmlDeviceGetMemoryInfo"));
  return Bytes(static_cast<int64_t>(memory.free));
}

absl::StatusOr<double> CudaBusSpeed(const std::string& uuid) {
  METS_ASSIGN_OR_RETURN(const Found found, Find(uuid));
  unsigned int generation = 0, width = 0;
  METS_RETURN_IF_ERROR(found.nvml->StatusOf(
      found.nvml->link_generation(found.device, &generation),
      "nvmlDeviceGetMaxPcieLinkGeneration"));
  METS_RETURN_IF_ERROR(
      found.nvml->StatusOf(found.nvml->link_width(found.device, &width),
                           "nvmlDeviceGetMaxPcieLinkWidth"));
  if (generation < 1 || generation > std::size(kLaneBytesPerSecond)) {
    return absl::UnimplementedError(
        absl::StrCat("a link of PCIe generation ", generation));
  }
  return kReached * kLaneBytesPerSecond[generation - 1] * width;
}

absl::StatusOr<std::vector<CudaProcess>> CudaProcessesOf(
    const std::string& uuid) {
  METS_ASSIGN_OR_RETURN(const Found found, Find(uuid));
  if (found.nvml->processes == nullptr) {
    return absl::FailedPreconditionError(
        "this NVIDIA driver does not say which processes use a device; 510 "
        "and later do");
  }
  std::vector<NvmlProcess> infos(1024);
  unsigned int count = infos.size();
  METS_RETURN_IF_ERROR(found.nvml->StatusOf(
      found.nvml->processes(found.device, &count, infos.data()),
      "nvmlDeviceGetComputeRunningProcesses"));
  std::vector<CudaProcess> processes;
  for (unsigned int i = 0; i < count; ++i) {
    const bool known = infos[i].used != kNvmlUnknown;
    processes.push_back(
        {static_cast<int>(infos[i].pid),
         Bytes(known ? static_cast<int64_t>(infos[i].used) : 0)});
  }
  return processes;
}

}  // namespace mets
