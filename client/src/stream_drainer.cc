#include "client/src/stream_drainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/log.h"

namespace mets::client {

StreamDrainer::~StreamDrainer() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool StreamDrainer::Drain(uint64_t ticket) {
  if (streams_.Idle()) return false;
  absl::MutexLock lock(&mutex_);
  asked_ = std::max(asked_, ticket);  // Others' may come late.
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return true;
}

void StreamDrainer::Run() {
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || asked_ != 0;
  };
  for (;;) {
    uint64_t ticket;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&something));
      if (stopped_) return;
      ticket = std::exchange(asked_, 0);
    }
    const absl::Status status = streams_.Wait(streams_.all());
    if (!status.ok()) {
      Log(LogLevel::kError, absl::StrCat("the program's streams have failed: ",
                                         status.message()));
    }
    done_(ticket);
  }
}

}  // namespace mets::client
