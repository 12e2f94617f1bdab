// Device: whose work may still touch a range. A buffer's `streams` are those on
// which ops that used it have ended, and on which it was allocated and freed;
// they stay when it becomes a cached range. A fence is recorded only when
// somebody has to wait.
#include "absl/strings/str_cat.h"
#include "client/src/device.h"
#include "client/src/log.h"

namespace mets::client {

void Device::PassTo(const Stream& stream, Buffer* buffer) {
  const StreamMask others =
      stream.Others(buffer->streams.load(std::memory_order_relaxed));
  buffer->AddStreams(stream.bit);
  if (others == 0) return;
  streams_.Order(stream, others);
  // The stream's own fences cover them now.
  buffer->streams.fetch_and(~others | stream.bit, std::memory_order_relaxed);
}

void Device::AwaitStreams(const std::vector<Buffer*>& ranges) {
  StreamMask users = 0;
  for (Buffer* range : ranges) {
    users |= range->streams.load(std::memory_order_relaxed);
    if (range->copies.load(std::memory_order_acquire) == 0) continue;
    // It was freed while it was on its way out.
    absl::MutexLock lock(&mutex_);
    while (range->copies.load(std::memory_order_acquire) > 0) {
      changed_.Wait(&mutex_);
    }
  }
  if (users == 0) return;
  const absl::Status status = streams_.Wait(users);
  if (!status.ok()) {
    Log(LogLevel::kError,
        absl::StrCat("the program's streams have failed: ", status.message()));
  }
  for (Buffer* range : ranges) {
    range->streams.store(0, std::memory_order_relaxed);
  }
}

}  // namespace mets::client
