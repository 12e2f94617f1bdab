// JobProgram: a recorded job as the simulator runs it, op by op.
#ifndef METS_DAEMON_SIM_JOB_PROGRAM_H_
#define METS_DAEMON_SIM_JOB_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/steps/step_program.h"
#include "common/trace/trace.h"

namespace mets::sim {

struct JobOp {
  double gap = 0;     // Seconds on the host since the op before has ended.
  double busy = 0;    // Seconds on the device.
  uint64_t kind = 0;  // steps::KindOf its name.
  std::vector<steps::Access> accesses;  // Indexes into JobProgram::buffers.
  std::vector<uint32_t> frees;

  // No op at all, but one allocation outside of any.
  bool only_allocates() const {
    return busy == 0 && accesses.size() == 1 &&
           accesses[0].kind == steps::AccessKind::kNew;
  }
};

struct JobProgram {
  std::string name;
  std::vector<Bytes> buffers;  // One for each allocation.
  std::vector<JobOp> ops;
  // Most bytes of allocations below the threshold that live at once. They are
  // kept on the device all the time, as slabs in use would be.
  Bytes small_peak;
  Bytes peak;                   // Of all live bytes, the small ones included.
  double seconds = 0;           // Of all gaps and ops.
  double input_seconds = 0;     // Of it, AddInputWork's.
  std::vector<size_t> repeats;  // RepeatProgram: the first op of each time
                                // but the first.
};

struct ProgramOptions {
  Bytes threshold = KiB(64);  // Smaller allocations are not buffers.
  double time_scale = 1;      // Times are multiplied with it.
  // When positive, an op takes as long as an accelerator would need: its
  // recorded time divided by `speedup`, but at least its bytes over
  // `memory_bandwidth` and at least `launch` (a roofline).
  double speedup = 0;
  double memory_bandwidth = 2.5e12;
  double launch = 4e-6;
};

// What `trace` does. Events between an op's begin and end are that op; ops that
// overlap follow one another in the order of their beginnings. A trace without
// ops (of another tool) has one wherever a read follows a write, until the
// next; a write right before the free of its block is no use of it. A trace
// without accesses (allocations only) writes a buffer when it is allocated and
// reads it when it is freed.
absl::StatusOr<JobProgram> MakeJobProgram(const trace::Trace& trace,
                                          const ProgramOptions& options);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_JOB_PROGRAM_H_
