// Recovery: what an earlier daemon has left.
#ifndef METS_DAEMON_APP_RECOVERY_RECOVERY_H_
#define METS_DAEMON_APP_RECOVERY_RECOVERY_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/unique_fd.h"
#include "daemon/app/recovery/state_file.h"

namespace mets::app {

// A session whose process lives.
struct LiveSession {
  RecordedSession record;
  UniqueFd pidfd;
  bool kept = false;  // With all that it holds (KeptPool).
};

struct Recovery {
  Epoch epoch;              // Of this daemon.
  Epoch last_epoch;         // That the state file names; none: there is none.
  SessionId first_session;  // Ids of this daemon start here.
  std::vector<LiveSession> sessions;
  std::vector<SessionId> ended;  // Kept ones whose process does not live.
  // What those processes hold: METS's own, though not free. By device, and of
  // the swap space.
  std::map<std::string, Bytes> held;
  Bytes held_swap;
  core::OperatorSettings settings;
  // Not empty: the state file could not be used, and why.
  std::string warning;
};

// A pidfd of the session's process; nullopt unless that still is the one
// recorded.
std::optional<UniqueFd> OpenIfSame(const RecordedSession& session);

// Reads the state file, if there is one, and keeps the sessions whose process
// still is the one recorded (pid and start time). Without a usable file the
// epoch is random. Never fails: a daemon starts also without memories.
Recovery Recover(const std::string& state_path);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_RECOVERY_RECOVERY_H_
