#include "client/loader/cuda_device_id.h"

#include <dlfcn.h>

#include <cstdio>

namespace mets {
namespace {

// As cuda.h has them; the driver's results, device handles and CUuuid.
using Result = int;
using Device = int;
struct Uuid {
  unsigned char bytes[16];
};

struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*count)(int* count) = nullptr;
  Result (*get)(Device* device, int ordinal) = nullptr;
  Result (*name)(char* name, int length, Device device) = nullptr;
  Result (*uuid)(Uuid* uuid, Device device) = nullptr;
};

template <typename Function>
bool Take(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool LoadDriver(const std::string& file, Driver* driver, std::string* error) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *error = std::string("this machine has no NVIDIA driver: ") + dlerror();
    return false;
  }
  // cuDeviceGetUuid without the version has a MIG instance's whole GPU.
  if (!Take(library, "cuInit", &driver->init) ||
      !Take(library, "cuDeviceGetCount", &driver->count) ||
      !Take(library, "cuDeviceGet", &driver->get) ||
      !Take(library, "cuDeviceGetName", &driver->name) ||
      !Take(library, "cuDeviceGetUuid_v2", &driver->uuid)) {
    *error = "the NVIDIA driver (" + file + ") is too old for METS";
    return false;
  }
  return true;
}

bool Failed(const char* call, Result result, std::string* error) {
  if (result == 0) return false;
  *error = std::string(call) + ": CUDA error " + std::to_string(result);
  return true;
}

std::string UuidText(const Uuid& uuid, bool mig) {
  std::string text = mig ? "MIG" : "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", uuid.bytes[i]);
    text += hex;
  }
  return text;
}

}  // namespace

bool CudaDeviceId(const std::string& driver_file, int ordinal, std::string* id,
                  std::string* error) {
  Driver driver;
  if (!LoadDriver(driver_file, &driver, error)) return false;
  int count = 0;
  if (Failed("cuInit", driver.init(0), error) ||
      Failed("cuDeviceGetCount", driver.count(&count), error)) {
    return false;
  }
  if (ordinal < 0 || ordinal >= count) {
    *error = "there is no device cuda:" + std::to_string(ordinal) +
             ": this process sees " + std::to_string(count) + " GPUs";
    return false;
  }
  Device device = 0;
  char name[256] = {};
  Uuid uuid = {};
  if (Failed("cuDeviceGet", driver.get(&device, ordinal), error) ||
      Failed("cuDeviceGetName", driver.name(name, sizeof(name) - 1, device),
             error) ||
      Failed("cuDeviceGetUuid", driver.uuid(&uuid, device), error)) {
    return false;
  }
  // The driver tells a MIG instance by its name alone ("… MIG 1g.10gb").
  *id = UuidText(uuid, std::string(name).find(" MIG ") != std::string::npos);
  return true;
}

}  // namespace mets
