// VictimPolicy: in which order buffers leave a device. Policies choose; the
// core acts.
#ifndef METS_DAEMON_CORE_VICTIMS_VICTIM_POLICY_H_
#define METS_DAEMON_CORE_VICTIMS_VICTIM_POLICY_H_

#include <string>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::core {

// A buffer that may leave.
struct VictimFacts {
  Bytes size;
  absl::Time last_use;
  // When it will be used again; InfiniteFuture when nothing says so: then
  // recency is all there is.
  absl::Time next_use = absl::InfiniteFuture();
  bool clean = false;  // Leaves without a copy.
  // What its way out and back takes on the bus.
  absl::Duration copy_time;
  // Bytes × seconds by which the device would be overcommitted during its
  // absence, where a step's curve of live bytes is known (planner.h); else 0.
  double excess_area = 0;
};

// Thread-compatible; pure: equal facts give equal answers.
class VictimPolicy {
 public:
  virtual ~VictimPolicy() = default;

  // The name by which configurations choose it.
  virtual std::string name() const = 0;

  // Orders buffers of one session, one size class and equal cleanness: the
  // largest key leaves first. It does not change with time, so that such
  // buffers can be kept in order.
  virtual double Key(const VictimFacts& facts) const = 0;

  // Compares buffers of all sessions and sizes: the largest score at `now`
  // leaves first.
  virtual double Score(absl::Time now, const VictimFacts& facts) const = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_VICTIM_POLICY_H_
