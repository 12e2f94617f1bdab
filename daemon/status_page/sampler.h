// Sampler: the core's state, once a second.
#ifndef METS_DAEMON_STATUS_PAGE_SAMPLER_H_
#define METS_DAEMON_STATUS_PAGE_SAMPLER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "daemon/core/ports.h"

namespace mets::status_page {

// A device at one moment.
struct DevicePoint {
  Bytes resident, swapped;
  double evicted_per_second = 0;   // Bytes, since the point before.
  double restored_per_second = 0;  // Likewise.
};

// One second: the points of the devices, in the order of the status.
struct Sample {
  uint64_t number = 0;  // Ascends from 1.
  absl::Time time;
  std::vector<DevicePoint> devices;
};

// The bytes that moved between two states, on the device: what the jobs that
// are in both have moved in between, and what new ones have moved at all.
DevicePoint PointOf(const core::Status& before, const core::Status& now,
                    size_t device, absl::Duration between);

// Asks the source from its own thread, so that any number of viewers costs the
// core one copy of its state a second. Keeps five minutes. Thread-safe; source
// and clock are borrowed.
class Sampler {
 public:
  static constexpr size_t kKept = 300;

  Sampler(const core::StatusSource& source, const Clock& clock,
          absl::Duration period = absl::Seconds(1));
  ~Sampler();

  // The newest state. Not null.
  std::shared_ptr<const core::Status> status() const;
  // Samples behind `after`, oldest first.
  std::vector<Sample> Samples(uint64_t after) const;

 private:
  void Run();
  void Take();

  const core::StatusSource& source_;
  const Clock& clock_;
  const absl::Duration period_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const core::Status> status_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> samples_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mets::status_page

#endif  // METS_DAEMON_STATUS_PAGE_SAMPLER_H_
