#include "daemon/core/operating/job_end.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mets::core {
namespace {

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

std::string CostText(const Job& job, const JobOnDevice& part,
                     const std::string& device, absl::Duration life) {
  const absl::Duration memory = part.wait_times.sum() - part.before.memory_wait;
  const absl::Duration turn = part.gate_wait - part.before.gate_wait;
  const double share =
      life > absl::ZeroDuration() ? absl::FDivDuration(memory + turn, life) : 0;
  return absl::StrCat("job '", job.name, "' has ended on ", device, " after ",
                      Seconds(life), ": it waited ", Seconds(memory),
                      " for memory and ", Seconds(turn), " for its turn (",
                      absl::StrFormat("%.0f", 100 * share), " % of its time); ",
                      FormatBytes(part.ended.evicted - part.before.evicted),
                      " left the device and ",
                      FormatBytes(part.ended.restored - part.before.restored),
                      " came back; it had at most ",
                      FormatBytes(part.ended.peak_live));
}

}  // namespace

void BeginJob(const State& state, Job& job) {
  job.began = state.now;
  for (JobOnDevice& part : job.devices) {
    part.ended.peak_live = part.ended.peak_resident = Bytes();
    part.before.evicted = part.ended.evicted;
    part.before.restored = part.ended.restored;
    part.before.waits = part.waits;
    part.before.memory_wait = part.wait_times.sum();
    part.before.gate_wait = part.gate_wait;
  }
}

void TellJobEnd(State& state, const Job& job, const std::vector<bool>& had) {
  const absl::Duration life = state.now - job.began;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    const JobOnDevice& part = job.devices[i];
    if (!had[i] && part.ended.peak_live.is_zero() &&
        part.waits == part.before.waits) {
      continue;
    }
    JobEnded ended;
    ended.job = job.name;
    ended.device = state.devices[i].config.name;
    ended.text = CostText(job, part, ended.device, life);
    state.Send(OperatorAction(std::move(ended)));
  }
}

}  // namespace mets::core
