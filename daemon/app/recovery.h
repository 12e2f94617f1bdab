// Recovery: what an earlier daemon has left.
#ifndef METS_DAEMON_APP_RECOVERY_H_
#define METS_DAEMON_APP_RECOVERY_H_

#include <map>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/unique_fd.h"
#include "daemon/app/state_file.h"

namespace mets::app {

// A session whose process lives.
struct LiveSession {
  RecordedSession record;
  UniqueFd pidfd;
};

struct Recovery {
  Epoch epoch;              // Of this daemon.
  SessionId first_session;  // Ids of this daemon start here.
  std::vector<LiveSession> sessions;
  // What those processes hold: METS's own, though not free. By device, and of
  // the swap space.
  std::map<std::string, Bytes> held;
  Bytes held_swap;
  // Not empty: the state file could not be used, and why.
  std::string warning;
};

// Reads the state file, if there is one, and keeps the sessions whose process
// still is the one recorded (pid and start time). Without a usable file the
// epoch is random. Never fails: a daemon starts also without memories.
Recovery Recover(const std::string& state_path);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_RECOVERY_H_
