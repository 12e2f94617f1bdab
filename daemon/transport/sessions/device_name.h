// Names of devices in messages of clients.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_DEVICE_NAME_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_DEVICE_NAME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mets::transport {

// INVALID_ARGUMENT when it is too long to be one.
inline absl::Status CheckDeviceName(const std::string& device) {
  constexpr size_t kMost = 255;
  if (device.size() <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("device name of ", device.size(), " bytes"));
}

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_DEVICE_NAME_H_
