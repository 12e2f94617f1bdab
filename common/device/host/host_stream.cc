#include "common/device/host/host_stream.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace mets {
namespace {

// The program's signals are for its own threads.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HostStream>> HostStream::Start(uint64_t last) {
  auto stream = absl::WrapUnique(new HostStream(last));
  BlockSignals inherited_by_the_thread;
  try {
    stream->thread_ = std::thread([s = stream.get()] { s->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("create a stream's thread: ", error.what()));
  }
  pthread_setname_np(stream->thread_.native_handle(), "mets-stream");
  return stream;
}

HostStream::~HostStream() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

uint64_t HostStream::Submit(Task task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  return ++submitted_;
}

uint64_t HostStream::Record() { return Submit(nullptr); }

uint64_t HostStream::last_number() const {
  absl::MutexLock lock(&mutex_);
  return submitted_;
}

absl::StatusOr<bool> HostStream::Poll(uint64_t number) {
  if (completed_.load(std::memory_order_acquire) < number) return false;
  absl::MutexLock lock(&mutex_);
  absl::Status error = ErrorOf(number);
  if (!error.ok()) return error;
  return true;
}

absl::Status HostStream::Wait(uint64_t number) {
  const auto passed = [this, number] {
    return completed_.load(std::memory_order_acquire) >= number;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&passed));
  return ErrorOf(number);
}

void HostStream::Run() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !tasks_.empty() || stopping_;
  };
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    const absl::Status status = RunTask(std::move(task));
    absl::MutexLock lock(&mutex_);
    Complete(status);
  }
}

absl::Status HostStream::RunTask(Task task) {
  // What the task holds goes with it, before anybody learns of its end.
  absl::Status status = task != nullptr ? task() : absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (task == nullptr) return std::exchange(since_record_, absl::OkStatus());
  since_record_.Update(status);
  return status;
}

void HostStream::Complete(const absl::Status& status) {
  const uint64_t number = completed_.load(std::memory_order_relaxed) + 1;
  if (!status.ok()) {
    failures_.emplace(number, status);
    if (failures_.size() > kMaxFailures) failures_.erase(failures_.begin());
  }
  completed_.store(number, std::memory_order_release);
}

absl::Status HostStream::ErrorOf(uint64_t number) const {
  auto it = failures_.find(number);
  return it == failures_.end() ? absl::OkStatus() : it->second;
}

}  // namespace mets
