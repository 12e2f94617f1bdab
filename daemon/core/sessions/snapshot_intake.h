// SnapshotIntake: what sessions that are back still hold.
#ifndef METS_DAEMON_CORE_SESSIONS_SNAPSHOT_INTAKE_H_
#define METS_DAEMON_CORE_SESSIONS_SNAPSHOT_INTAKE_H_

#include <string>

#include "daemon/core/chunks/retirement.h"
#include "daemon/core/sessions/report_intake.h"
#include "daemon/core/state.h"

namespace mets::core {

// Collects the parts of a snapshot and, with the last one, makes the ledger
// agree with it: chunks granted but not listed are free again, the buffer
// table is replaced, slots that no buffer names are freed, and what the process
// holds from an earlier epoch counts as orphan bytes. A snapshot that cannot be
// true (a chunk of somebody else) refuses the session and books nothing.
//
// Of orphan_bytes, cached_bytes and the like, the largest value of a device's
// parts counts: a client may repeat them or send them once.
//
// Not thread-safe. Borrows its arguments.
class SnapshotIntake {
 public:
  SnapshotIntake(State* state, ReportIntake* reports, Retirement* retirement)
      : state_(*state), reports_(*reports), retirement_(*retirement) {}

  void OnSnapshot(const Snapshot& input);

 private:
  std::string PartFault(const Session& session, const Snapshot& part) const;
  std::string WholeFault(const Session& session) const;
  void Apply(Session& session, size_t device);
  void ReplaceBuffers(Session& session, size_t device, const Snapshot& whole);
  Snapshot Merge(const Session& session, size_t device) const;

  State& state_;
  ReportIntake& reports_;
  Retirement& retirement_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_SNAPSHOT_INTAKE_H_
