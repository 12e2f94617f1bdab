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
  const absl::Duration lost = part.wait_times.sum() + part.gate_wait;
  const double share =
      life > absl::ZeroDuration() ? absl::FDivDuration(lost, life) : 0;
  return absl::StrCat(
      "job '", job.name, "' has ended on ", device, " after ", Seconds(life),
      ": it waited ", Seconds(part.wait_times.sum()), " for memory and ",
      Seconds(part.gate_wait), " for its turn (",
      absl::StrFormat("%.0f", 100 * share), " % of its time); ",
      FormatBytes(part.ended.evicted), " left the device and ",
      FormatBytes(part.ended.restored), " came back; it had at most ",
      FormatBytes(part.ended.peak_live));
}

}  // namespace

void TellJobEnd(State& state, const Job& job, const std::vector<bool>& had) {
  const absl::Duration life = state.now - job.began;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    const JobOnDevice& part = job.devices[i];
    if (!had[i] && part.ended.peak_live.is_zero() && part.waits == 0) continue;
    JobEnded ended;
    ended.job = job.name;
    ended.device = state.devices[i].config.name;
    ended.text = CostText(job, part, ended.device, life);
    state.Send(OperatorAction(std::move(ended)));
  }
}

}  // namespace mets::core
