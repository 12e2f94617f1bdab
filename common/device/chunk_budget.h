// ChunkBudget: how much of a device's pool its chunks take.
#ifndef METS_COMMON_DEVICE_CHUNK_BUDGET_H_
#define METS_COMMON_DEVICE_CHUNK_BUDGET_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"

namespace mets {

// Chunks that were reserved and not given back never add up to more than
// `total`. Thread-safe.
class ChunkBudget {
 public:
  // `classes`: the sizes of chunks. `what`: names it in errors.
  ChunkBudget(Bytes total, std::vector<Bytes> classes, std::string what);

  Bytes total() const { return total_; }
  const std::vector<Bytes>& classes() const { return classes_; }
  Bytes left() const;

  // INVALID_ARGUMENT unless chunks have this size.
  absl::Status CheckClass(Bytes size) const;
  // RESOURCE_EXHAUSTED when so much is not left.
  absl::Status Reserve(Bytes size);
  void Unreserve(Bytes size);

 private:
  const Bytes total_;
  const std::vector<Bytes> classes_;
  const std::string what_;
  mutable absl::Mutex mutex_;
  Bytes used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CHUNK_BUDGET_H_
