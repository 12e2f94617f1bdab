#include "tests/contract/cuda_backends.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cuda_map_driver.h"
#include "common/device/cuda/cuda_pool_driver.h"
#include "tests/common/device/cuda/fake_cuda.h"

namespace mets {
namespace {

// The suites fill a device several times, whose largest chunk has 128 MiB.
constexpr Bytes kSmallestTotal = GiB(1);

std::unique_ptr<PoolDriver> MakePool(const CudaApi& api,
                                     const CudaDevice& device,
                                     CudaPoolOptions options, Bytes total) {
  options.total = std::max(total, kSmallestTotal);
  return std::make_unique<CudaPoolDriver>(api, device, std::move(options));
}

std::unique_ptr<MapDriver> MakeMap(const CudaApi& api,
                                   const CudaDevice& device) {
  absl::StatusOr<std::unique_ptr<CudaMapDriver>> map =
      CudaMapDriver::Create(api, device, CudaMapOptions());
  METS_CHECK_OK(map);
  return *std::move(map);
}

// Copies between a GPU's memory and ordinary memory.
class DeviceMemory {
 public:
  DeviceMemory(const CudaApi& api, const CudaDevice& device)
      : api_(api), context_(*CudaContext::Retain(api, device)) {
    const CudaContext::Scope scope(*context_);
    METS_CHECK_OK(api_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void Write(char* to, const std::string& bytes) {
    const CudaContext::Scope scope(*context_);
    METS_CHECK_OK(api_.cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                         bytes.data(), bytes.size(), stream_));
    METS_CHECK_OK(api_.cuStreamSynchronize(stream_));
  }
  std::string Read(const char* from, size_t size) {
    const CudaContext::Scope scope(*context_);
    std::string bytes(size, '\0');
    METS_CHECK_OK(api_.cuMemcpyDtoHAsync(
        bytes.data(), reinterpret_cast<CUdeviceptr>(from), size, stream_));
    METS_CHECK_OK(api_.cuStreamSynchronize(stream_));
    return bytes;
  }

 private:
  const CudaApi& api_;
  const std::unique_ptr<CudaContext> context_;
  CUstream stream_;
};

// The driver opens descriptors when it is used first, and keeps them; the
// suites count descriptors.
void UseOnce(const Backend& backend) {
  const std::unique_ptr<PoolDriver> pool = backend.make_pool(Bytes());
  const std::unique_ptr<MapDriver> map = backend.make_map();
  const Bytes size = pool->info().chunk_classes.front();
  METS_CHECK_OK(pool->FreeBytes());
  UniqueFd fd = *pool->CreateChunk(size);
  const ChunkHandle chunk = *map->ImportChunk(UniqueFd(dup(fd.get())), size);
  const ExtentHandle extent =
      *map->RegisterExtent(*pool->CreateExtent(size), size);
  char* range = *map->ReserveRange(size);
  METS_CHECK_OK(map->Map(range, {chunk}));
  backend.write(range, "used");
  METS_CHECK_OK(map->CopyOut(range, {chunk}, {{extent, Bytes(), size}}, size,
                             StreamHandle::kHostOrder));
  METS_CHECK_OK(map->Unmap(range, {chunk}));
  METS_CHECK_OK(pool->ReleaseChunk(std::move(fd)));
}

absl::StatusOr<Backend> RealBackend() {
  METS_ASSIGN_OR_RETURN(const CudaApi* api, LoadCudaApi());
  METS_ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices,
                        CudaDevices(*api));
  if (devices.empty()) return absl::NotFoundError("no device is visible");
  const CudaDevice device = devices.front();
  auto memory = std::make_shared<DeviceMemory>(*api, device);
  Backend backend;
  backend.is_host = false;
  backend.large_class = 1;
  backend.make_pool = [api, device](Bytes total) {
    return MakePool(*api, device, {}, total);
  };
  backend.make_map = [api, device] { return MakeMap(*api, device); };
  backend.write = [memory](char* to, const std::string& bytes) {
    memory->Write(to, bytes);
  };
  backend.read = [memory](const char* from, size_t size) {
    return memory->Read(from, size);
  };
  UseOnce(backend);
  return backend;
}

}  // namespace

Backend FakeCudaBackend() {
  const CudaApi& api = fake_cuda::Api();
  const CudaDevice device = CudaDevices(api)->front();
  Backend backend = HostMemoryBackend("FakeCuda");
  backend.is_host = false;
  backend.large_class = 1;
  backend.make_pool = [&api, device](Bytes total) {
    CudaPoolOptions options;
    options.free_memory = [](const std::string&) { return GiB(2); };
    return MakePool(api, device, std::move(options), total);
  };
  backend.make_map = [&api, device] { return MakeMap(api, device); };
  return backend;
}

Backend CudaBackend() {
  absl::StatusOr<Backend> backend = RealBackend();
  if (!backend.ok()) {
    Backend none;
    none.missing = absl::StrCat("no GPU here: ", backend.status().message());
    backend = std::move(none);
  }
  backend->name = "Cuda";
  return *std::move(backend);
}

}  // namespace mets
