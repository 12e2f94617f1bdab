// Names of devices in messages of clients.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_DEVICE_NAME_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_DEVICE_NAME_H_

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mets::transport {

// INVALID_ARGUMENT when it is too long to be one, or would break a line of a
// log that shows it.
inline absl::Status CheckDeviceName(const std::string& device) {
  constexpr size_t kMost = 255;
  const bool prints = std::all_of(device.begin(), device.end(), [](char c) {
    return absl::ascii_isgraph(c);
  });
  if (prints && device.size() <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a device name of ", device.size(), " bytes: it has at most ", kMost,
      ", printable and without spaces"));
}

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_DEVICE_NAME_H_
