// StepReporter: finds a simulated job's step and tells the core, as a client.
#ifndef METS_DAEMON_SIM_STEP_REPORTER_H_
#define METS_DAEMON_SIM_STEP_REPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/steps/plan_follower.h"
#include "common/steps/report_pacer.h"
#include "common/steps/step_recorder.h"
#include "daemon/core/types.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// Feeds a StepRecorder with a job's ops, and follows a plan. Times are seconds
// of the job, without what it has waited. Not thread-safe. Borrows the program.
class StepReporter {
 public:
  StepReporter(const JobProgram& program, SessionId session, std::string device)
      : program_(program), session_(session), device_(std::move(device)) {}

  // Op `index` begins, and ends. What the plan wants moved then, as buffers of
  // the JobProgram, is appended.
  void Begin(double now, size_t index, steps::PlanMoves* moves);
  void End(double now, size_t index, steps::PlanMoves* moves);

  // Follows a plan from the next boundary on, whenever its step repeats; false
  // when that is not the step now. It ends when the core is told another one.
  bool Follow(const steps::StepPlan& plan);
  void EndPlan() { follower_.reset(); }

  // Whether the op begun last is the first one of a known step.
  bool BeginsStep() const {
    return op_.has_value() && recorder_.point().boundary &&
           recorder_.program() != nullptr;
  }

  // Ops that use a buffer in the step that repeats now; 0: none does.
  uint32_t step_ops() const { return recorder_.point().length; }

  // What the core should know, at `now`; to be asked as often as a client does.
  std::vector<core::Input> Report(double now);
  // core::BufferReport::logical of a buffer of the JobProgram.
  uint32_t LogicalOf(uint32_t buffer) const;
  // Changes with the meaning of these.
  uint64_t version() const { return known() ? recorder_.version() : 0; }

 private:
  bool follows() const { return follower_.has_value() && known(); }
  // The core knows the program of the step now.
  bool known() const {
    return recorder_.program() != nullptr &&
           recorder_.program_number() == told_program_;
  }
  // From buffers of the step to buffers of the JobProgram.
  void Append(const steps::PlanMoves& from, steps::PlanMoves* to) const;

  const JobProgram& program_;
  const SessionId session_;
  const std::string device_;
  steps::StepRecorder recorder_;
  std::optional<steps::OpId> op_;
  uint64_t signature_ = 0;
  double step_began_ = 0;
  bool stirred_ = false;       // Ops since the last progress was told.
  uint64_t told_program_ = 0;  // Its number.
  absl::Duration told_duration_;
  uint64_t told_signature_ = 0;
  std::optional<steps::PlanFollower> follower_;
  steps::ReportPacer pacer_;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_STEP_REPORTER_H_
