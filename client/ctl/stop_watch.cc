#include "client/ctl/stop_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "common/base/errno_status.h"
#include "common/base/stop_signals.h"

namespace mets::ctl {

void StopWatch::BlockSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

absl::StatusOr<std::unique_ptr<StopWatch>> StopWatch::Start(
    absl::Duration limit, std::function<void()> stop) {
  const sigset_t set = StopSignals();
  UniqueFd signals(signalfd(-1, &set, SFD_CLOEXEC));
  if (!signals.ok()) return ErrnoToStatus(errno, "signalfd");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake.ok()) return ErrnoToStatus(errno, "eventfd");
  auto watch =
      absl::WrapUnique(new StopWatch(std::move(signals), std::move(wake)));
  watch->thread_ =
      std::thread([w = watch.get(), limit, stop = std::move(stop)] {
        w->Run(limit, stop);
      });
  return watch;
}

StopWatch::StopWatch(UniqueFd signals, UniqueFd wake) noexcept
    : signals_(std::move(signals)), wake_(std::move(wake)) {}

StopWatch::~StopWatch() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void StopWatch::Run(absl::Duration limit, const std::function<void()>& stop) {
  const absl::Time end = absl::Now() + limit;
  pollfd waiting[] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  for (;;) {
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    constexpr absl::Duration kRound = absl::Hours(1);
    const int64_t ms =
        absl::ToInt64Milliseconds(left < kRound ? left : kRound) + 1;
    if (poll(waiting, 2, static_cast<int>(ms)) <= 0) continue;
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents != 0) break;
  }
  stop();
}

}  // namespace mets::ctl
