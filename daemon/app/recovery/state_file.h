// The state file: what a daemon leaves to the next one.
#ifndef METS_DAEMON_APP_RECOVERY_STATE_FILE_H_
#define METS_DAEMON_APP_RECOVERY_STATE_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/types.h"

namespace mets::app {

// A session and what its process holds.
struct RecordedSession {
  SessionId session;
  DomainId domain;
  std::string job;
  uid_t uid = 0;
  pid_t pid = 0;
  uint64_t start_time = 0;
  std::vector<std::pair<std::string, Bytes>> held;  // Device name, bytes.
};

struct SavedState {
  Epoch epoch;
  Bytes swap;  // In use, so that it can be counted as METS's own.
  std::vector<RecordedSession> sessions;
  core::OperatorSettings settings;
};

// As JSON text, and back. INVALID_ARGUMENT for text that is no state of this
// version.
std::string FormatState(const SavedState& state);
absl::StatusOr<SavedState> ParseState(const std::string& text);

// Reads the file; nullopt when there is none.
absl::StatusOr<std::optional<SavedState>> LoadState(const std::string& path);

// Replaces the file in one step: a reader sees the old or the new text, also
// after a crash of the daemon in between.
absl::Status StoreText(const std::string& path, const std::string& text);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_RECOVERY_STATE_FILE_H_
