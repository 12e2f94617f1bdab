// Homecoming: brings back all that has left a device.
#ifndef METS_CLIENT_SRC_HOMECOMING_H_
#define METS_CLIENT_SRC_HOMECOMING_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/src/device.h"

namespace mets::client {

// What a section of a program that announces no ops needs before it begins:
// every buffer of the device resident. Evictions that have not ended are called
// off. The rest comes back by several threads, each of which asks for the
// memory of a few buffers at a time and copies them in: so memory is used as it
// comes, and the bus copies for one while others wait for memory or map it.
// Largest first: what is copied last is small, and keeps few from the bus.
//
// Used once, by one thread, whose section the gate counts already: no held
// buffer begins to leave meanwhile. One per device at a time (others wait).
class Homecoming {
 public:
  Homecoming(Device& device, absl::Time deadline)
      : device_(device), deadline_(deadline) {}
  Homecoming(const Homecoming&) = delete;
  Homecoming& operator=(const Homecoming&) = delete;

  // Blocks. When there is no memory until the deadline, Uplink::Acquire's
  // error; what has come back by then stays.
  absl::Status Run();

 private:
  struct Absent {
    uint64_t id;
    Bytes size;
    const Buffer* buffer;
  };

  // What is swapped, largest first; waits while there is none of that and
  // somebody else moves a buffer. Empty: nothing is away.
  std::vector<Absent> Collect();
  // One thread's part.
  void BringSome();
  // Some of what is left, or nothing once it has failed.
  std::vector<Absent> Next();
  absl::Status Fetch(const std::vector<Absent>& some);
  absl::Status Bring(const Absent& absent, const ChunkSet& chunks);
  void Fail(const absl::Status& status);
  // Whether the daemon is to hear of what has come back; not too often.
  bool ShallTell();

  Device& device_;
  const absl::Time deadline_;
  absl::Mutex mutex_;  // A leaf.
  std::vector<Absent> absent_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  absl::Time told_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_HOMECOMING_H_
