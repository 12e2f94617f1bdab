// What happens to libmets in a forked child: it is dead there.
#ifndef METS_CLIENT_SRC_FORK_GUARD_H_
#define METS_CLIENT_SRC_FORK_GUARD_H_

#include <sys/types.h>

#include <atomic>

namespace mets::client {

namespace internal {
extern std::atomic<bool> forked;
}  // namespace internal

// True in a forked child of the process that called WatchForks. One load.
inline bool InForkedChild() {
  return internal::forked.load(std::memory_order_relaxed);
}

// The process that called WatchForks; 0 before.
pid_t OwnerPid();

// From now on, children know that they are children. Idempotent.
void WatchForks();

// Descriptors that a child closes at once (at most 64 are remembered).
void CloseInChild(int fd);
void DoNotCloseInChild(int fd);

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_FORK_GUARD_H_
