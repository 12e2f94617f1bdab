// ThrashMeter: whether jobs push each other's bytes out all the time.
#ifndef METS_DAEMON_CORE_SCHEDULING_THRASH_METER_H_
#define METS_DAEMON_CORE_SCHEDULING_THRASH_METER_H_

#include <map>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace mets::core {

// Looks at windows of half a second. A window is bad when at least two jobs
// moved, and either moving took a tenth of it (bytes ÷ bus speed) or two of
// them waited for memory and copies for a tenth of it: where swap space is
// still being made, copies wait for that. A tenth, because jobs that wait for a
// tenth of their time lose five times what quanta may cost them (2 %), and
// because what a start or a change of phase moves stays below it or ends soon:
// two bad windows in a row are thrash.
//
// Moves of one job alone are its own plan, and no thrash. Not thread-safe.
class ThrashMeter {
 public:
  explicit ThrashMeter(double bus_bytes_per_second)
      : bus_(bus_bytes_per_second) {}

  // Of a job so far.
  struct Spent {
    Bytes moved;  // Evicted and restored.
    absl::Duration waited;
  };

  // `spent`: by job.
  void Look(absl::Time now, const std::map<const void*, Spent>& spent);
  void Reset();
  bool thrashing() const { return bad_windows_ >= kBadWindows; }

 private:
  static constexpr absl::Duration kWindow = absl::Milliseconds(500);
  static constexpr double kShare = 0.1;
  static constexpr int kBadWindows = 2;

  const double bus_;
  absl::Time since_ = absl::InfinitePast();
  std::map<const void*, Spent> before_;
  int bad_windows_ = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_THRASH_METER_H_
