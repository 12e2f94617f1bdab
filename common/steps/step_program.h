// StepProgram: what one repetition of a training's step does, op by op.
#ifndef METS_COMMON_STEPS_STEP_PROGRAM_H_
#define METS_COMMON_STEPS_STEP_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::steps {

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kNew,       // Allocated by the op, and written.
  kReplaced,  // Not the buffer, but what an earlier kNew has replaced in this
              // repetition, and what still lives beside it.
};

struct Access {
  uint32_t buffer = 0;  // Index into StepProgram::buffers.
  AccessKind kind = AccessKind::kRead;
};

struct StepOp {
  absl::Duration start;  // Since the step's beginning.
  absl::Duration busy;   // How long it runs.
  std::vector<Access> accesses;
  std::vector<uint32_t> frees;  // Freed after it, before the next op.
};

// A logical buffer: the same one in each repetition.
struct StepBuffer {
  Bytes size;
  // It lives when the step begins and when it ends. Others are allocated and
  // freed within the step. One that persists and is both all the same is
  // replaced: it is another piece of memory from then on.
  bool persistent = false;
};

// One repetition. Plain data; the position of an op is its index in `ops`.
struct StepProgram {
  uint64_t signature = 0;  // Equal for repetitions of the same step.
  absl::Duration duration;
  std::vector<StepBuffer> buffers;
  std::vector<StepOp> ops;
};

// For each buffer, whether its memory is allocated within the step, and that,
// or what it had before, freed.
std::vector<bool> AllocatedWithin(const StepProgram& program);

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_PROGRAM_H_
