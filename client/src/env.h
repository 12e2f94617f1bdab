// Settings: what the process wishes, from mets_open_options and METS_*.
#ifndef METS_CLIENT_SRC_ENV_H_
#define METS_CLIENT_SRC_ENV_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/include/mets/mets.h"
#include "common/base/bytes.h"

namespace mets::client {

struct Settings {
  std::string run_dir;
  std::string job;
  std::string program;
  Bytes limit;
  Bytes guarantee;
  int priority = 0;
  int weight = 1;
  absl::Duration wait = absl::Seconds(60);  // Zero: fail at once.
  Bytes phantom;  // METS_PHANTOM_EVICTION; see DeviceOptions.
};

// `options` may be null. INVALID_ARGUMENT names the variable, its text and the
// accepted forms; FAILED_PRECONDITION: no job name.
absl::StatusOr<Settings> ReadSettings(const mets_open_options* options);

// "60s", "2m30s", "forever" (InfiniteDuration), "fail" (zero).
absl::StatusOr<absl::Duration> ParseWait(const std::string& text);

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_ENV_H_
