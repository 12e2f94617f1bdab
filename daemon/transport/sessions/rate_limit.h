// RateLimit: how fast one client may talk.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_RATE_LIMIT_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_RATE_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"

namespace mets::transport {

// A token bucket: units flow in at a constant rate up to a burst; what is used
// beyond that must be waited for. Not thread-safe.
class RateLimit {
 public:
  RateLimit(double units_per_second, double burst)
      : rate_(units_per_second), burst_(burst), units_(burst) {}

  // Uses `units` at time `now` and returns how long to wait before the next
  // use; zero while the burst lasts.
  absl::Duration Use(absl::Time now, double units) {
    if (now > last_) {
      const double seconds = absl::ToDoubleSeconds(
          std::min<absl::Duration>(now - last_, absl::Hours(1)));
      units_ = std::min(burst_, units_ + seconds * rate_);
      last_ = now;
    }
    units_ -= units;
    if (units_ >= 0) return absl::ZeroDuration();
    return absl::Seconds(-units_ / rate_);
  }

 private:
  const double rate_;
  const double burst_;
  double units_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_RATE_LIMIT_H_
