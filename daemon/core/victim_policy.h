// VictimPolicy: in which order buffers leave a device. Policies choose; the
// core acts.
#ifndef METS_DAEMON_CORE_VICTIM_POLICY_H_
#define METS_DAEMON_CORE_VICTIM_POLICY_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace mets::core {

// A buffer that may leave.
struct VictimCandidate {
  SessionId session;
  BufferId buffer;
  Bytes size;
  absl::Time last_use;
  bool clean = false;  // Leaves without a copy.
  int priority = 0;    // Of its job.
};

// Thread-compatible; deterministic: equal candidates give equal ranks.
class VictimPolicy {
 public:
  virtual ~VictimPolicy() = default;

  // The name by which configurations choose it.
  virtual std::string name() const = 0;

  // Orders `candidates` so that the one that costs least to take stands first.
  virtual void Rank(absl::Time now,
                    std::vector<VictimCandidate>* candidates) const = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIM_POLICY_H_
