// ChunkCut: of which sizes a process's chunks are to be, so that the buffers of
// its step are few chunks each.
#ifndef METS_CLIENT_SRC_CHUNK_CUT_H_
#define METS_CLIENT_SRC_CHUNK_CUT_H_

#include <vector>

#include "absl/time/time.h"
#include "client/src/chunk_store.h"
#include "common/base/bytes.h"
#include "common/steps/step_plan.h"
#include "common/steps/step_program.h"

namespace mets::client {

// How many chunks of each class `total` bytes are to be, for a step of which
// those buffers are away: of the smaller classes as many as its buffers, each
// of the fewest chunks of its size, need at a time, and some more; of the
// largest the rest. What leaves has its memory for some time after its op.
// `classes`: ascending, each divides the next.
// REQUIRES: the absences are of that program.
ChunkCounts CutFor(const steps::StepProgram& program,
                   const std::vector<steps::Absence>& absences,
                   const std::vector<Bytes>& classes, Bytes total);

// Chunks to give away, and others of as many bytes to ask for.
struct ChunkExchange {
  ChunkCounts give, take;

  bool empty() const { return give.empty(); }
};

// What is wanted, and what brings a process closer to it. A few exchanges are
// due at once, more of them one by one, because others may undo them: a chunk
// that has to be made anew is some ms away. Not thread-safe.
class ChunkCut {
 public:
  static constexpr Bytes kMost = MiB(256);  // In one exchange.
  static constexpr int kAtOnce = 48;
  static constexpr absl::Duration kPeriod = absl::Seconds(1);  // Then.

  // Empty: nothing is.
  void Want(ChunkCounts wanted) { wanted_ = std::move(wanted); }

  // Whether an exchange may help, of which one is due.
  bool Helps(const ChunkCounts& held, absl::Time now);
  // Small chunks for large ones, or the reverse, of those that are free; empty
  // when none help. REQUIRES: Helps.
  ChunkExchange Next(const ChunkCounts& held, const ChunkCounts& free);

 private:
  ChunkCounts wanted_;
  double due_ = kAtOnce;
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_CHUNK_CUT_H_
