// Interference: how much copies for others slow down a class's steps.
#ifndef METS_DAEMON_CORE_MOVES_INTERFERENCE_H_
#define METS_DAEMON_CORE_MOVES_INTERFERENCE_H_

#include <cstdint>
#include <deque>
#include <map>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace mets::core {

// Compares steps that ran beside copies with steps of the same kind that did
// not: the median of what they took longer, per byte a second. Until there are
// enough of both, what was measured with a ResNet-50 training on an H100: 6 %
// at 90 GB/s. It is never taken to be less than a quarter of that.
//
// Not thread-safe.
class Interference {
 public:
  static constexpr double kPrior = 0.06 / 90e9;

  explicit Interference(double bus_bytes_per_second)
      : bus_(bus_bytes_per_second) {}

  // A step of the session took `duration` beside copies of so many bytes a
  // second. REQUIRES: nobody else computed then; duration > 0.
  void Add(SessionId session, uint64_t signature, absl::Duration duration,
           double bytes_per_second);
  void Forget(SessionId session) { quiet_.erase(session); }

  // The part that steps take longer, per byte a second.
  double PerByteRate() const;

 private:
  // Steps without copies beside them.
  struct Quiet {
    uint64_t signature = 0;
    std::deque<double> seconds;
  };

  const double bus_;
  std::map<SessionId, Quiet> quiet_;
  std::deque<double> slowdowns_;  // Per byte a second.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_MOVES_INTERFERENCE_H_
