// The handler itself only loads atomics and the thread's own state, writes to a
// pipe and waits on a futex: all of it is async-signal-safe.
#include "client/src/fault_handler.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "client/src/fork_guard.h"
#include "client/src/op.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

constexpr int kMaxRegions = 64;

// Without addresses: unused. `begin` is written last and cleared first.
struct Region {
  std::atomic<char*> begin{nullptr};
  std::atomic<char*> end{nullptr};
  std::atomic<Device*> device{nullptr};
};
Region regions[kMaxRegions];
std::mutex regions_mutex;  // Between writers.

enum Answer : int { kWaiting = 0, kServed = 1, kForeign = 2 };

// Lives on the faulting thread's stack.
struct Fault {
  char* address;
  Device* device;
  bool write = false;
  const Op* op = nullptr;
  char thread[16] = {};
  std::atomic<int> answer{kWaiting};
};

int pipe_fds[2] = {-1, -1};
struct sigaction previous;

void Futex(std::atomic<int>* word, int operation, int value) {
  syscall(SYS_futex, reinterpret_cast<int*>(word), operation, value, nullptr,
          nullptr, 0);
}

const Region* FindRegion(const char* address) {
  for (const Region& region : regions) {
    const char* begin = region.begin.load(std::memory_order_acquire);
    if (begin != nullptr && address >= begin && address < region.end) {
      return &region;
    }
  }
  return nullptr;
}

// Lets the access fault again, with the default action.
void UseDefault() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &action, nullptr);
}

void CallPrevious(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    UseDefault();
  } else {
    previous.sa_handler(signal);
  }
}

void SayForked(const char* address) {
  char line[256];
  const int n = snprintf(
      line, sizeof(line),
      "mets: this is a forked child of %d; the buffers of its parent do not "
      "exist here (touched %p)\n",
      static_cast<int>(OwnerPid()), static_cast<const void*>(address));
  if (n > 0) (void)!write(STDERR_FILENO, line, n);
}

// False also where it cannot be told.
bool IsWrite(const void* context) {
#ifdef __x86_64__
  constexpr greg_t kWriteFault = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] &
          kWriteFault) != 0;
#else
  (void)context;
  return false;
#endif
}

void OnFault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  char* address = static_cast<char*>(info->si_addr);
  const Region* region = info->si_code > 0 ? FindRegion(address) : nullptr;
  if (region == nullptr) {
    CallPrevious(signal, info, context);
    errno = saved_errno;
    return;
  }
  if (InForkedChild() || getpid() != OwnerPid()) {
    SayForked(address);
    UseDefault();
    return;
  }
  Fault fault;
  fault.address = address;
  fault.device = region->device;
  fault.write = IsWrite(context);
  fault.op = CurrentOp();
  prctl(PR_GET_NAME, fault.thread);
  const Fault* message = &fault;
  if (write(pipe_fds[1], &message, sizeof(message)) == sizeof(message)) {
    while (fault.answer.load(std::memory_order_acquire) == kWaiting) {
      Futex(&fault.answer, FUTEX_WAIT, kWaiting);
    }
  } else {
    fault.answer = kForeign;
  }
  if (fault.answer == kForeign) CallPrevious(signal, info, context);
  errno = saved_errno;
}

void ServeFaults() {
  for (;;) {
    Fault* fault;
    const ssize_t n = read(pipe_fds[0], &fault, sizeof(fault));
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof(fault)) return;
    // The thread waits, and so does its op.
    const Access access = {fault->write, fault->thread,
                           fault->op == nullptr ? "" : fault->op->name};
    const bool served = fault->device->ServeFault(fault->address, access);
    std::atomic<int>* answer = &fault->answer;
    answer->store(served ? kServed : kForeign, std::memory_order_release);
    Futex(answer, FUTEX_WAKE, 1);
  }
}

absl::Status Install() {
  WatchForks();
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "pipe");
  CloseInChild(pipe_fds[0]);
  CloseInChild(pipe_fds[1]);
  std::thread thread(ServeFaults);
  pthread_setname_np(thread.native_handle(), "mets-faults");
  thread.detach();
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  // Several threads may fault at once, and the previous handler may fault.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (sigaction(SIGSEGV, &action, &previous) != 0) {
    return ErrnoToStatus(errno, "sigaction");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServeFaultsOf(char* begin, char* end, Device* device) {
  std::lock_guard<std::mutex> lock(regions_mutex);
  if (pipe_fds[0] < 0) METS_RETURN_IF_ERROR(Install());
  for (Region& region : regions) {
    if (region.begin != nullptr) continue;
    region.end = end;
    region.device = device;
    region.begin.store(begin, std::memory_order_release);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError("more than 64 devices");
}

void StopServingFaultsOf(const Device* device) {
  std::lock_guard<std::mutex> lock(regions_mutex);
  for (Region& region : regions) {
    if (region.device != device) continue;
    region.begin = nullptr;
    region.device = nullptr;
  }
}

}  // namespace mets::client
