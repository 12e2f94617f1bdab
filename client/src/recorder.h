// Recorder: what the program does with a device's buffers, as a trace.
#ifndef METS_CLIENT_SRC_RECORDER_H_
#define METS_CLIENT_SRC_RECORDER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/trace/trace.h"

namespace mets::client {

// While it is on, turns events into the text of a trace (docs/trace_format.md),
// which its owner takes away in parts. Off, then on until Stop or Fail, then
// off, with the rest of the text to be taken before the next Start.
//
// Thread-safe. While it is off, an event costs its caller one relaxed load
// (`on`); nothing else may be called then but has no effect. Events never wait
// for those who take the text: when more than `most_bytes` wait, the recording
// ends by an error, so that no event is lost silently. May be called with the
// device's mutex held; calls nothing of the device but `list` in Start.
class Recorder {
 public:
  explicit Recorder(Bytes most_bytes = MiB(64)) : most_(most_bytes) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // For the thread that has just freed a buffer: Start cannot have missed it.
  bool on_after_free() const { return on_.load(std::memory_order_seq_cst); }

  // Begins. `list` is called once with a function that takes what lives now:
  // buffers that are freed later, and those whose Free waits meanwhile.
  // FAILED_PRECONDITION when one is on, or its text is not taken yet.
  using AddLive = std::function<void(uint64_t id, Bytes bytes)>;
  absl::Status Start(absl::string_view job,
                     const std::function<void(const AddLive&)>& list);
  // Ends, with the line that says that nothing is missing.
  void Stop();
  // Ends, with the line that says why events are missing.
  void Fail(absl::string_view why);

  // The program's buffers. Accesses and frees of buffers that the recording
  // does not know are left out.
  void Alloc(uint64_t id, Bytes bytes);
  void Free(uint64_t id);
  // A write inside an op, after its begin.
  void Write(uint64_t id);

  // An op begins, with what it touches; its number, or 0 when off. `name` may
  // be null.
  struct Access {
    uint64_t id;
    bool write;
  };
  uint64_t BeginOp(const char* name, const Access* accesses, size_t count);
  void EndOp(uint64_t op);

  // Takes the oldest text: whole lines, at most kPartBytes; empty when there
  // is none.
  static constexpr size_t kPartBytes = 256 << 10;
  struct Part {
    std::string text;
    bool last = false;  // The recording has ended and all is taken.
    std::string error;  // Of the last part: why the recording failed.
  };
  Part Take();
  // Ends, and throws away what is not taken.
  void Discard();

 private:
  absl::Duration Now() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(absl::Duration time, trace::EventKind kind, uint64_t id, Bytes bytes,
           absl::string_view name = "") ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Touch(absl::Duration time, uint64_t id, bool write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string& Text() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndBy(absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(absl::string_view line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Bytes most_;
  std::atomic<bool> on_{false};

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // Not all is taken.
  std::chrono::steady_clock::time_point began_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_ ABSL_GUARDED_BY(mutex_);
  std::string error_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> parts_ ABSL_GUARDED_BY(mutex_);  // The last grows.
  Bytes waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_op_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Bytes> live_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<uint64_t> ops_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_RECORDER_H_
