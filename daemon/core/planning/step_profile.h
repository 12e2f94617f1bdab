// StepProfile: a step's uses, live bytes and times, ready to plan with.
#ifndef METS_DAEMON_CORE_PLANNING_STEP_PROFILE_H_
#define METS_DAEMON_CORE_PLANNING_STEP_PROFILE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/steps/step_program.h"

namespace mets::core {

struct Use {
  uint32_t op = 0;
  bool writes = false;
  bool fresh = false;  // The op allocates it, and needs nothing it had before.
};

// Of one logical buffer.
struct BufferProfile {
  std::vector<Use> uses;    // Ascending; one for each op that touches it.
  uint32_t free_after = 0;  // The op behind which it is freed, if it is.
};

// Immutable. Borrows the program, which must outlive it.
class StepProfile {
 public:
  explicit StepProfile(const steps::StepProgram& program);

  const steps::StepProgram& program() const { return program_; }
  // Of an op, without those of what has been replaced.
  const std::vector<steps::Access>& accesses(uint32_t op) const {
    return accesses_[op];
  }
  uint32_t ops() const { return static_cast<uint32_t>(program_.ops.size()); }
  const BufferProfile& buffer(uint32_t b) const { return buffers_[b]; }
  Bytes size(uint32_t b) const { return program_.buffers[b].size; }
  // Whether its memory, or what it had before, is freed within the step.
  bool frees(uint32_t b) const { return within_[b]; }
  // Bytes that the op allocates.
  Bytes fresh(uint32_t op) const { return fresh_[op]; }

  // Bytes that live while an op runs: what it allocates included, what is freed
  // behind it too.
  Bytes live(uint32_t op) const { return live_[op]; }
  Bytes peak() const { return peak_; }
  // Bytes that one op touches, at most.
  Bytes largest_op() const { return largest_op_; }

  // Seconds since the step's beginning.
  double start(uint32_t op) const { return start_[op]; }
  double end(uint32_t op) const { return end_[op]; }
  double duration() const { return duration_; }

  // Bytes × seconds by which the step's live bytes exceed `budget` between the
  // end of op `from` and the start of op `to`, around the step's end when `to`
  // does not lie behind `from`.
  class Excess {
   public:
    Excess(const StepProfile& profile, Bytes budget);
    double Between(uint32_t from, uint32_t to) const;

   private:
    std::vector<double> before_;  // Sum over the ops before each.
  };

 private:
  const steps::StepProgram& program_;
  std::vector<std::vector<steps::Access>> accesses_;
  std::vector<BufferProfile> buffers_;
  std::vector<bool> within_;  // AllocatedWithin
  std::vector<Bytes> live_, fresh_;
  std::vector<double> start_, end_;
  double duration_ = 0;
  Bytes peak_, largest_op_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PLANNING_STEP_PROFILE_H_
