// PlanSink: who moves the buffers that a plan wants moved.
#ifndef METS_CLIENT_SRC_PLAN_SINK_H_
#define METS_CLIENT_SRC_PLAN_SINK_H_

#include <cstdint>
#include <vector>

namespace mets::client {

// Buffers, by identifier, that are due now.
struct BufferMoves {
  struct Leave {
    uint64_t buffer = 0;
    uint32_t logical = 0;  // Whose slot it goes to.
  };
  std::vector<Leave> leave;
  std::vector<uint64_t> back;  // First needed first; before those that leave.
  bool empty() const { return leave.empty() && back.empty(); }
};

// Thread-safe; called while a plan is followed, with the StepWatch's mutex
// held. Does not block.
class PlanSink {
 public:
  virtual ~PlanSink() = default;
  virtual void Post(const BufferMoves& moves) = 0;
  // metsd is told of another step: the plan has ended.
  virtual void Drop() = 0;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_PLAN_SINK_H_
