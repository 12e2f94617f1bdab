// ReportPacer: how often a process tells metsd of its step.
#ifndef METS_COMMON_STEPS_REPORT_PACER_H_
#define METS_COMMON_STEPS_REPORT_PACER_H_

#include <algorithm>

#include "absl/time/time.h"

namespace mets::steps {

// Where the process is in its step is told once a second. Another step is told
// soon, for until then nothing of it is planned; but a program whose steps
// change again and again tells each later than the last, at most a second.
//
// Times are those of the process, without what it has waited. Not thread-safe.
class ReportPacer {
 public:
  bool progress_due(absl::Duration now) const { return now >= next_progress_; }
  bool step_due(absl::Duration now) const { return now >= next_step_; }

  void ToldProgress(absl::Duration now) { next_progress_ = now + kPeriod; }
  void ToldStep(absl::Duration now) {
    const bool lasted = now >= next_step_ + kPeriod;
    pause_ = lasted ? kFirstPause : std::min(2 * pause_, kPeriod);
    next_step_ = now + pause_;
  }

 private:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(10);

  absl::Duration next_progress_, next_step_;
  absl::Duration pause_ = kFirstPause;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_REPORT_PACER_H_
