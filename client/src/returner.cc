#include "client/src/returner.h"

#include <pthread.h>

#include <utility>

#include "absl/time/time.h"
#include "client/src/homecoming.h"

namespace mets::client {
namespace {

// What others have leave has left by then; more is not coming.
constexpr absl::Duration kPatience = absl::Milliseconds(100);

}  // namespace

Returner::~Returner() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Returner::Begin() {
  absl::MutexLock lock(&mutex_);
  asked_ = true;
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "mets-return");
}

void Returner::Run() {
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || asked_;
  };
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&something));
      if (stopped_) return;
      asked_ = false;
    }
    Homecoming(device_).RunAhead(kPatience);
  }
}

}  // namespace mets::client
