// `metsd --check-config`.
#ifndef METS_DAEMON_APP_CONFIG_CHECK_CONFIG_H_
#define METS_DAEMON_APP_CONFIG_CHECK_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/app/config/config.h"

namespace mets::app {

// A text with a line for each key that was given; or what metsd would refuse to
// start for, as far as that can be seen without touching devices and sockets.
absl::StatusOr<std::string> CheckConfig(const Config& config);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_CHECK_CONFIG_H_
