// StepReporter: finds a simulated job's step and tells the core, as a client.
#ifndef METS_DAEMON_SIM_STEP_REPORTER_H_
#define METS_DAEMON_SIM_STEP_REPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/steps/step_recorder.h"
#include "daemon/core/types.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// Feeds a StepRecorder with a job's ops. Times are seconds of the job, without
// what it has waited. Not thread-safe. Borrows the program.
class StepReporter {
 public:
  StepReporter(const JobProgram& program, SessionId session, std::string device)
      : program_(program), session_(session), device_(std::move(device)) {}

  // Op `index` begins, and ends.
  void Begin(double now, size_t index);
  void End(double now, size_t index);

  // Whether the op begun last is the last one of a step.
  bool EndsStep() const {
    const steps::StepPoint& point = recorder_.point();
    return point.signature != 0 && point.position + 1 == point.length;
  }

  // What the core should know, at `now`.
  std::vector<core::Input> Report(double now);
  // core::BufferReport::logical of a buffer of the JobProgram.
  uint32_t LogicalOf(uint32_t buffer) const;
  // Changes with the meaning of these.
  uint64_t version() const { return told_version_; }

 private:
  void TellNeed(std::vector<core::Input>* inputs);

  const JobProgram& program_;
  const SessionId session_;
  const std::string device_;
  steps::StepRecorder recorder_;
  std::optional<steps::OpId> op_;
  uint64_t signature_ = 0;
  double step_began_ = 0;
  uint64_t told_version_ = 0;
  std::optional<core::StepNeed> told_need_;
  double next_progress_ = 0;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_STEP_REPORTER_H_
