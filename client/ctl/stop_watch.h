// StopWatch: calls back when a signal asks this process to stop, or in time.
#ifndef METS_CLIENT_CTL_STOP_WATCH_H_
#define METS_CLIENT_CTL_STOP_WATCH_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace mets::ctl {

// Waits for SIGINT and SIGTERM in a thread of its own.
class StopWatch {
 public:
  // Blocks the signals in the calling thread and those it starts later: before
  // any thread exists, so that none of them takes a signal's default action.
  static void BlockSignals();
  // REQUIRES: the signals are blocked. Calls `stop` once, from another thread:
  // at the first signal, or when `limit` has passed. Not after the destructor.
  static absl::StatusOr<std::unique_ptr<StopWatch>> Start(
      absl::Duration limit, std::function<void()> stop);
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  StopWatch(UniqueFd signals, UniqueFd wake) noexcept;
  void Run(absl::Duration limit, const std::function<void()>& stop);

  const UniqueFd signals_;
  const UniqueFd wake_;  // By the destructor.
  std::thread thread_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_STOP_WATCH_H_
