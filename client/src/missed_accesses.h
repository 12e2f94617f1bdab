// MissedAccesses: what the phantom evictions of a process have found.
#ifndef METS_CLIENT_SRC_MISSED_ACCESSES_H_
#define METS_CLIENT_SRC_MISSED_ACCESSES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"

namespace mets::client {

// How a thread touched memory that was away. `op`: the op that it was in; empty
// when there was none, or its name is not known.
struct Access {
  bool write = false;
  std::string thread;
  std::string op;
};

// Counts phantom evictions, and the accesses that missed their announcement, by
// what is known of them. Thread-safe.
class MissedAccesses {
 public:
  void NoteHidden() {
    absl::MutexLock lock(&mutex_);
    ++hidden_;
  }
  // `last_op`: the op that used the buffer last; may be empty.
  void Note(const Access& access, Bytes buffer, const std::string& last_op);

  // Lines for people, the totals first.
  std::vector<std::string> Report() const;

 private:
  mutable absl::Mutex mutex_;
  uint64_t hidden_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t missed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t> kinds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_MISSED_ACCESSES_H_
