// Which METS device a CUDA ordinal is.
#ifndef METS_CLIENT_LOADER_CUDA_DEVICE_ID_H_
#define METS_CLIENT_LOADER_CUDA_DEVICE_ID_H_

#include <string>

namespace mets {

constexpr char kCudaDriver[] = "libcuda.so.1";

// Writes the UUID ("GPU-…", of a MIG instance "MIG-…") of the device that CUDA
// programs of this process know as `ordinal`, by CUDA_VISIBLE_DEVICES and
// CUDA_DEVICE_ORDER as the driver reads them. Initialises the driver but makes
// no context. Returns false, with a text in `error`, when `driver` (a library's
// name) cannot be opened or there is no such device.
[[nodiscard]] bool CudaDeviceId(const std::string& driver, int ordinal,
                                std::string* id, std::string* error);

}  // namespace mets

#endif  // METS_CLIENT_LOADER_CUDA_DEVICE_ID_H_
