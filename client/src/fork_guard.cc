#include "client/src/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>

namespace mets::client {
namespace internal {
std::atomic<bool> forked{false};
}  // namespace internal

namespace {

constexpr int kMaxFds = 64;
// Descriptor + 1; 0: unused.
std::atomic<int> fds_to_close[kMaxFds];
std::atomic<pid_t> owner{0};

void InChild() {
  internal::forked.store(true, std::memory_order_relaxed);
  for (std::atomic<int>& entry : fds_to_close) {
    const int fd = entry.load(std::memory_order_relaxed) - 1;
    if (fd >= 0) close(fd);
  }
}

bool Exchange(int from, int to) {
  for (std::atomic<int>& entry : fds_to_close) {
    int expected = from;
    if (entry.compare_exchange_strong(expected, to)) return true;
  }
  return false;
}

}  // namespace

pid_t OwnerPid() { return owner.load(std::memory_order_relaxed); }

void WatchForks() {
  static std::once_flag once;
  std::call_once(once, [] {
    owner.store(getpid());
    pthread_atfork(nullptr, nullptr, InChild);
  });
}

void CloseInChild(int fd) { Exchange(0, fd + 1); }
void DoNotCloseInChild(int fd) { Exchange(fd + 1, 0); }

}  // namespace mets::client
