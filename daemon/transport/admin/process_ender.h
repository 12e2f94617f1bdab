// ProcessEnder: ends processes, kindly first.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_PROCESS_ENDER_H_
#define METS_DAEMON_TRANSPORT_ADMIN_PROCESS_ENDER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace mets::transport {

// Sends SIGTERM, and SIGKILL to those that have not ended by their time.
//
// Not thread-safe. Never blocks. Pidfds name a process for good: none that has
// got its pid later is meant.
class ProcessEnder {
 public:
  // The caller keeps the pidfd. PERMISSION_DENIED or INVALID_ARGUMENT when the
  // process cannot be reached (another user's, another pid namespace); one that
  // has ended already is fine.
  absl::Status End(int pidfd, absl::Time kill_at);

  // Sends what is due; forgets who has ended.
  void Tick(absl::Time now);

  size_t open() const { return open_.size(); }

 private:
  struct Process {
    UniqueFd pidfd;
    absl::Time kill_at;
  };
  std::vector<Process> open_;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_PROCESS_ENDER_H_
