// HandoverMeter: how fast memory passes from one job to another.
#ifndef METS_DAEMON_CORE_COSTS_HANDOVER_METER_H_
#define METS_DAEMON_CORE_COSTS_HANDOVER_METER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::core {

// Counts the bytes that come back by orders to evict, and the time in which
// there was such an order, from its sending to its answer. Several at once
// count once. Not thread-safe; times never go back.
class HandoverMeter {
 public:
  void Begin(absl::Time now) {
    if (running_++ == 0) since_ = now;
  }
  // REQUIRES: one has begun.
  void End(absl::Time now) {
    if (--running_ == 0) time_ += now - since_;
  }
  void AddBytes(Bytes bytes) { bytes_ += bytes; }

  Bytes bytes() const { return bytes_; }
  absl::Duration time(absl::Time now) const {
    return running_ == 0 ? time_ : time_ + (now - since_);
  }

 private:
  int64_t running_ = 0;
  absl::Time since_ = absl::InfinitePast();
  absl::Duration time_;
  Bytes bytes_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_COSTS_HANDOVER_METER_H_
