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

// Buffers come back by several threads, each of which asks for the memory of a
// few at a time and copies them in: so memory is used as it comes, and the bus
// copies for one while others wait for memory or map it.
//
// Used once, by one thread. One per device at a time (others wait).
class Homecoming {
 public:
  explicit Homecoming(Device& device) : device_(device) {}
  Homecoming(const Homecoming&) = delete;
  Homecoming& operator=(const Homecoming&) = delete;

  // What a section of a program that announces no ops needs before it begins:
  // every buffer resident. Evictions that have not ended are called off.
  // Largest first: what is copied last is small, and keeps few from the bus.
  // The gate counts the section already: no held buffer begins to leave
  // meanwhile.
  //
  // Blocks. When there is no memory until the deadline, Uplink::Acquire's
  // error; what has come back by then stays.
  absl::Status Run(absl::Time deadline);

  // As a quantum begins, before ops need it: what is swapped now, as far as
  // nothing has to leave for it that is not leaving already. Those first whose
  // last use is the oldest; a step that repeats needs them next. Ends when the
  // gate closes, and when there was no memory for so long.
  void RunAhead(absl::Duration patience);

 private:
  struct Absent {
    uint64_t id;
    Bytes size;
    const Buffer* buffer;
  };

  // What is swapped, largest first; waits while there is none of that and
  // somebody else moves a buffer. Empty: nothing is away.
  std::vector<Absent> Collect();
  // What is swapped, the oldest last use first.
  std::vector<Absent> Swapped();
  void BringAll(std::vector<Absent> absent, size_t threads);
  // One thread's part.
  void BringSome();
  // Some of what is left, or nothing once it has failed.
  std::vector<Absent> Next();
  // `patience`: to ask again.
  absl::Status Fetch(const std::vector<Absent>& some, absl::Duration patience);
  absl::StatusOr<std::vector<ChunkSet>> Memory(const std::vector<Absent>& some,
                                               absl::Duration patience);
  absl::Status Bring(const Absent& absent, const ChunkSet& chunks);
  bool ahead() const { return patience_ > absl::ZeroDuration(); }
  void Fail(const absl::Status& status);
  // Whether the daemon is to hear of what has come back; not too often.
  bool ShallTell();

  Device& device_;
  absl::Time deadline_;      // Of requests.
  absl::Duration patience_;  // See RunAhead; zero: it runs for a section.
  absl::Mutex mutex_;        // A leaf.
  std::vector<Absent> absent_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  absl::Time told_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_HOMECOMING_H_
