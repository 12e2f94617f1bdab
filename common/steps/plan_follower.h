// PlanFollower: what a job's plan wants moved, as its step goes on.
#ifndef METS_COMMON_STEPS_PLAN_FOLLOWER_H_
#define METS_COMMON_STEPS_PLAN_FOLLOWER_H_

#include <cstdint>
#include <vector>

#include "common/steps/step_plan.h"
#include "common/steps/step_program.h"

namespace mets::steps {

// Logical buffers that are to leave now, and to come back now.
struct PlanMoves {
  std::vector<uint32_t> evict, restore;
};

// Fed with the ops of a step as they begin and end. A buffer is to leave once
// it has been used as often as in the program up to that place (since it was
// allocated, or since the repetition began), whatever ops have changed places;
// copies back are due where the op at that position, or a later one, begins.
//
// What it says is advice: a buffer may be in use, gone, or moved already. O(1)
// amortised for each op and use. Not thread-safe; pure.
class PlanFollower {
 public:
  // `plan` is for `program`; moves of others are left out.
  PlanFollower(const StepProgram& program, const StepPlan& plan);

  // An op begins at a position of its repetition, the first one at a boundary.
  // Positions before the first boundary move nothing.
  void Begin(uint32_t position, bool boundary, PlanMoves* moves);
  // An op that used the logical buffer, once or more, has ended. `fresh`: it
  // has allocated it.
  void Used(uint32_t buffer, bool fresh, PlanMoves* moves);

 private:
  struct Leave {
    uint32_t buffer;
    uint32_t uses;  // Before it leaves.
  };
  struct Count {
    bool persistent = false;
    uint32_t repetition = 0;
    uint32_t uses = 0;
  };

  void ReturnUpTo(uint32_t position, PlanMoves* moves);

  std::vector<Leave> leaves_;          // By buffer, then by uses.
  std::vector<uint32_t> first_leave_;  // Of each buffer, in leaves_.
  std::vector<PlannedReturn> returns_;
  std::vector<Count> counts_;  // Of each buffer.
  uint32_t repetition_ = 0;    // 0: before the first boundary.
  size_t next_return_ = 0;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_PLAN_FOLLOWER_H_
