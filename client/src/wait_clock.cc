#include "client/src/wait_clock.h"

#include <time.h>

namespace mets::client {
namespace {

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

void WaitClock::Enter() {
  absl::MutexLock lock(&mutex_);
  if (waiting_++ == 0) since_ns_ = NowNs();
}

void WaitClock::Leave() {
  absl::MutexLock lock(&mutex_);
  if (--waiting_ > 0) return;
  // In this order, for `waited`: sooner counted twice than not at all.
  waited_ns_ += NowNs() - since_ns_.load();
  since_ns_ = 0;
}

absl::Duration WaitClock::waited() const {
  const int64_t since = since_ns_.load();
  const int64_t now = since != 0 ? NowNs() - since : 0;
  return absl::Nanoseconds(waited_ns_.load() + now);
}

}  // namespace mets::client
