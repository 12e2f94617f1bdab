#include "daemon/app/config/cuda_specs.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace mets::app {
namespace {

constexpr Bytes kPoolUnit = MiB(128);  // Sizes that are chosen are multiples.

absl::Status WithDevice(const DeviceSpec& spec, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("device cuda:", spec.id, ": ",
                                                  status.message()));
}

// The UUIDs that a selector means.
absl::StatusOr<std::vector<std::string>> Select(
    const std::vector<CudaDeviceInfo>& devices, const std::string& selector) {
  std::vector<std::string> ids;
  for (const CudaDeviceInfo& device : devices) ids.push_back(device.id);
  if (ids.empty()) {
    return absl::NotFoundError(
        "no CUDA device is visible (see CUDA_VISIBLE_DEVICES)");
  }
  if (selector == "all") return ids;
  size_t index = 0;
  if (absl::SimpleAtoi(selector, &index)) {
    if (index < ids.size()) return std::vector<std::string>{ids[index]};
  } else if (std::find(ids.begin(), ids.end(), selector) != ids.end()) {
    return std::vector<std::string>{selector};
  }
  return absl::NotFoundError(absl::StrCat("there is no such device, but ",
                                          ids.size(), ": ",
                                          absl::StrJoin(ids, ", ")));
}

absl::StatusOr<Bytes> FitSize(const CudaMachine& machine, Bytes held,
                              const DeviceSpec& spec) {
  const absl::StatusOr<Bytes> free = machine.free_bytes(spec.id);
  if (!free.ok()) {
    if (spec.size > Bytes()) return spec.size;
    return absl::Status(
        free.status().code(),
        absl::StrCat(free.status().message(),
                     "; give a size, such as cuda:", spec.id, ":16GiB"));
  }
  const Bytes usable = *free + held;
  const Bytes size = spec.size > Bytes()
                         ? spec.size
                         : kPoolUnit * ((usable - kCudaReserve) / kPoolUnit);
  if (size > Bytes() && size <= usable) return size;
  return absl::ResourceExhaustedError(absl::StrCat(
      spec.size > Bytes()
          ? absl::StrCat("it has ", FormatBytes(usable), " free, not ",
                         FormatBytes(spec.size))
          : absl::StrCat("it has only ", FormatBytes(usable), " free, and ",
                         FormatBytes(kCudaReserve),
                         " stay outside the pool for the jobs' contexts"),
      "; which other programs use it? (nvidia-smi)"));
}

}  // namespace

absl::Status SettleCudaDevices(const CudaMachine& machine,
                               const std::map<std::string, Bytes>& held,
                               Config* config) {
  std::vector<DeviceSpec> settled;
  std::set<std::string> taken;
  for (const DeviceSpec& spec : config->devices) {
    if (spec.kind != "cuda") {
      settled.push_back(spec);
      continue;
    }
    const absl::StatusOr<std::vector<CudaDeviceInfo>> devices =
        machine.devices();
    if (!devices.ok()) return WithDevice(spec, devices.status());
    const absl::StatusOr<std::vector<std::string>> ids =
        Select(*devices, spec.id);
    if (!ids.ok()) return WithDevice(spec, ids.status());
    for (const std::string& id : *ids) {
      DeviceSpec one = {spec.kind, spec.size, id};
      if (!taken.insert(id).second) {
        return WithDevice(one, absl::InvalidArgumentError("it is named twice"));
      }
      const auto held_there = held.find(id);
      const absl::StatusOr<Bytes> size =
          FitSize(machine,
                  held_there == held.end() ? Bytes() : held_there->second, one);
      if (!size.ok()) return WithDevice(one, size.status());
      one.size = *size;
      settled.push_back(std::move(one));
    }
  }
  config->devices = std::move(settled);
  return absl::OkStatus();
}

}  // namespace mets::app
