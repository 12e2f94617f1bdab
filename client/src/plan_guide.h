// PlanGuide: which buffers a plan wants moved, as the step goes on.
#ifndef METS_CLIENT_SRC_PLAN_GUIDE_H_
#define METS_CLIENT_SRC_PLAN_GUIDE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "client/src/plan_sink.h"
#include "common/steps/plan_follower.h"
#include "common/steps/step_recorder.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

steps::StepPlan ToStepPlan(const v1::Plan& plan);

// A buffer that an op has used.
struct UsedBuffer {
  uint64_t buffer = 0;
  bool fresh = false;  // The op has allocated it.
};

// A PlanFollower that is told of buffers, and tells a sink of buffers. Not
// thread-safe; the recorder and the sink must outlive it.
class PlanGuide {
 public:
  // REQUIRES: the recorder has a program; the plan is for it.
  PlanGuide(const steps::StepRecorder& recorder, const v1::Plan& plan,
            PlanSink* sink);

  // The recorder's latest op begins. While another step repeats, or none, the
  // plan rests.
  void Begin();
  // An op has ended that used these; in any order, perhaps several times.
  void Used(const std::vector<UsedBuffer>& buffers);
  // The plan has ended; nothing but the destructor may follow.
  void End() { sink_->Drop(); }

 private:
  void PostMoves();

  const steps::StepRecorder& recorder_;
  PlanSink* const sink_;
  const uint64_t program_;  // The recorder's program_number().
  steps::PlanFollower follower_;
  // Logical buffers that an op has used, and whether they were there before.
  std::vector<std::pair<uint32_t, bool>> used_;
  steps::PlanMoves due_;
  BufferMoves moves_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_PLAN_GUIDE_H_
