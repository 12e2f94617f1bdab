// syscall, so that nobody's wait depends on the machine's wall clock.
//
// Abseil, and by it gRPC, waits until a moment of the wall clock (its releases
// before 2023 have no other way): where somebody sets the clock back by an
// hour, each wait with a timeout under way takes an hour longer, and metsd and
// all its jobs stand still. It enters the kernel by libc's syscall. With this
// definition in its place, such a wait is one of the same length by the
// monotonic clock.
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>

#include "absl/time/time.h"

extern "C" __attribute__((visibility("default"))) long syscall(long number,
                                                               ...) noexcept;

namespace {

using Syscall = long (*)(long, ...);

Syscall FindLibcs() {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Syscall>(dlsym(libc, "syscall"));
}

Syscall Libcs() {
  static std::atomic<Syscall> found{nullptr};
  Syscall libcs = found.load(std::memory_order_acquire);
  if (libcs == nullptr) {
    libcs = FindLibcs();
    found.store(libcs, std::memory_order_release);
  }
  return libcs;
}

// Before a signal handler needs it.
__attribute__((constructor)) void Find() { Libcs(); }

absl::Duration Read(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return absl::DurationFromTimespec(now);
}

// The same distance ahead on the monotonic clock.
timespec OnMonotonicClock(const timespec& until) {
  const absl::Duration left =
      absl::DurationFromTimespec(until) - Read(CLOCK_REALTIME);
  return absl::ToTimespec(
      std::max(Read(CLOCK_MONOTONIC) + left, absl::ZeroDuration()));
}

}  // namespace

long syscall(long number, ...) noexcept {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  auto& [address, op, value, timeout, address2, value2] = arguments;
  timespec until;
  if (number == SYS_futex && timeout != 0 &&
      (op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
      (op & FUTEX_CLOCK_REALTIME) != 0) {
    until = OnMonotonicClock(*reinterpret_cast<const timespec*>(timeout));
    timeout = reinterpret_cast<long>(&until);
    op &= ~long{FUTEX_CLOCK_REALTIME};
  }
  return Libcs()(number, address, op, value, timeout, address2, value2);
}
