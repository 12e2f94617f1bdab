#include "daemon/transport/admin/process_ender.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/errno_status.h"

namespace mets::transport {
namespace {

// False when there is nobody to get it.
bool Send(int pidfd, int number) {
  return syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0;
}

}  // namespace

absl::Status ProcessEnder::End(int pidfd, absl::Time kill_at) {
  if (!Send(pidfd, SIGTERM)) {
    return errno == ESRCH ? absl::OkStatus()
                          : ErrnoToStatus(errno, "send SIGTERM to a process");
  }
  UniqueFd copy(fcntl(pidfd, F_DUPFD_CLOEXEC, 0));
  if (!copy.ok()) return ErrnoToStatus(errno, "duplicate a pidfd");
  open_.push_back({std::move(copy), kill_at});
  return absl::OkStatus();
}

void ProcessEnder::Tick(absl::Time now) {
  open_.erase(std::remove_if(
                  open_.begin(), open_.end(),
                  [now](const Process& process) {
                    const bool due = process.kill_at <= now;
                    return !Send(process.pidfd.get(), due ? SIGKILL : 0) || due;
                  }),
              open_.end());
}

}  // namespace mets::transport
