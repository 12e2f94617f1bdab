// StreamDrainer: waits for the program's streams where nobody else may.
#ifndef METS_CLIENT_SRC_STREAM_DRAINER_H_
#define METS_CLIENT_SRC_STREAM_DRAINER_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/src/stream_table.h"

namespace mets::client {

// One thread, which begins with the first drain of a device whose program has
// streams. Thread-safe. `streams` and whom `done` calls must outlive it; the
// destructor waits for the streams that are being drained.
class StreamDrainer {
 public:
  using Done = std::function<void(uint64_t ticket)>;
  StreamDrainer(StreamTable& streams, Done done)
      : streams_(streams), done_(std::move(done)) {}
  ~StreamDrainer();
  StreamDrainer(const StreamDrainer&) = delete;
  StreamDrainer& operator=(const StreamDrainer&) = delete;

  // False when nothing is on any stream: nothing happens. Otherwise the thread
  // calls `done` once what is on all streams that are known now, at least, has
  // passed; not if one of a later ticket is asked for before this one has begun.
  // Does not block.
  bool Drain(uint64_t ticket);

 private:
  void Run();

  StreamTable& streams_;
  const Done done_;
  absl::Mutex mutex_;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;  // A ticket; 0: none.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_STREAM_DRAINER_H_
