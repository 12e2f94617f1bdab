// Device: whose work may still touch a range. A buffer's `streams` are those on
// which ops that used it have ended, and on which it was allocated and freed;
// they stay when it becomes a cached range. What was on them when the last op
// had ended, or when it was freed (`used`), is waited for; of what is held,
// whose ops nobody announces, all that is on them now.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/device.h"
#include "client/src/log.h"

namespace mets::client {

void Device::PassTo(const Stream& stream, Buffer* buffer) {
  const StreamMask others =
      stream.Others(buffer->streams.load(std::memory_order_relaxed));
  buffer->AddStreams(stream.bit);
  if (others == 0) return;
  streams_.Order(stream, others, buffer->used.load(std::memory_order_relaxed));
  // The stream's own fences cover them now.
  buffer->streams.fetch_and(~others | stream.bit, std::memory_order_relaxed);
}

void Device::AwaitCopies(const std::vector<Buffer*>& ranges) {
  for (Buffer* range : ranges) {
    if (range->copies.load(std::memory_order_acquire) == 0) continue;
    // It was freed while it was on its way out.
    absl::MutexLock lock(&mutex_);
    while (range->copies.load(std::memory_order_acquire) > 0) {
      changed_.Wait(&mutex_);
    }
  }
}

void Device::AwaitStreams(StreamMask users, StreamTable::Moment used) {
  const absl::Status status = streams_.Wait(users, used);
  if (!status.ok()) {
    Log(LogLevel::kError,
        absl::StrCat("the program's streams have failed: ", status.message()));
  }
}

void Device::AwaitStreams(const std::vector<Buffer*>& ranges) {
  AwaitCopies(ranges);
  StreamMask users = 0;
  StreamTable::Moment last = 0;
  for (Buffer* range : ranges) {
    users |= range->streams.load(std::memory_order_relaxed);
    last = std::max(last, range->used.load(std::memory_order_relaxed));
  }
  AwaitStreams(users, last);
  for (Buffer* range : ranges) {
    range->streams.store(0, std::memory_order_relaxed);
  }
}

void Device::AwaitStreams(const ChunkSet& chunks) {
  StreamMask users = 0;
  StreamTable::Moment last = 0;
  for (Chunk* chunk : chunks) {
    users |= std::exchange(chunk->streams, 0);
    last = std::max(last, chunk->used);
  }
  AwaitStreams(users, last);
}

}  // namespace mets::client
