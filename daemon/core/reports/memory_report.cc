#include "daemon/core/reports/memory_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/reports/why.h"

namespace mets::core {
namespace {

constexpr size_t kMostHolders = 16;

const char* DoesText(JobPhase phase) {
  switch (phase) {
    case JobPhase::kComputes:
      return "";
    case JobPhase::kIdle:
      return ", idle";
    case JobPhase::kWaitsForMemory:
      return ", waits for memory";
    case JobPhase::kWaitsForTurn:
      return ", waits for its turn";
    case JobPhase::kPaused:
      return ", paused by an operator";
    case JobPhase::kSilent:
      return ", does not answer";
    case JobPhase::kAway:
      return ", not connected";
  }
  return "";
}

std::string HolderLine(const State& state, const Job& job, size_t device) {
  const JobSums sums = SumJob(state, job, device);
  std::string line =
      absl::StrCat("job '", job.name, "': ", FormatBytes(sums.resident),
                   " resident, ", FormatBytes(sums.swapped), " swapped, ",
                   FormatBytes(sums.pinned), " pinned");
  const auto add = [&line](Bytes bytes, const char* before, const char* after) {
    if (bytes.is_zero()) return;
    absl::StrAppend(&line, ", ", before, FormatBytes(bytes), after);
  };
  add(sums.held, "", " held");
  add(sums.shared, "", " shared");
  add(sums.cached, "", " cached");
  add(job.limit, "limit ", "");
  add(job.guarantee, "guarantee ", "");
  return line + DoesText(PhaseOf(state, job, device));
}

}  // namespace

JobSums SumJob(const State& state, const Job& job, size_t device) {
  JobSums sums;
  for (SessionId id : job.sessions) {
    const Holding& holding = state.sessions.all().at(id).holdings[device];
    sums.resident += holding.resident();
    sums.swapped += holding.buffers.swapped();
    sums.pinned += std::min(holding.pinned, holding.resident());
    sums.held += std::min(holding.buffers.held(), holding.resident());
    sums.cached += holding.cached;
    sums.shared += holding.shared;
  }
  return sums;
}

std::vector<std::string> HolderLines(const State& state, size_t device) {
  std::vector<std::pair<Bytes, const Job*>> holders;
  for (const auto& [key, job] : state.sessions.jobs()) {
    const JobSums sums = SumJob(state, job, device);
    const Bytes all = sums.resident + sums.cached + sums.swapped;
    if (!all.is_zero()) holders.emplace_back(sums.resident + sums.cached, &job);
  }
  std::stable_sort(
      holders.begin(), holders.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> lines;
  for (const auto& [bytes, job] : holders) {
    if (lines.size() == kMostHolders) {
      lines.push_back(
          absl::StrCat("and ", holders.size() - kMostHolders, " more jobs"));
      break;
    }
    lines.push_back(HolderLine(state, *job, device));
  }
  return lines;
}

std::string RoomText(const State& state, size_t device) {
  const ChunkLedger& ledger = state.devices[device].ledger;
  const Bytes free = ledger.creatable() + ledger.bytes(ChunkState::kFree);
  Bytes full, clean;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    full += state.swap.bytes(i, SlotState::kFull);
    clean += state.swap.bytes(i, SlotState::kClean);
  }
  std::string text =
      absl::StrCat("Pool of ", state.devices[device].config.name, ": ",
                   FormatBytes(ledger.pool()), ", ", FormatBytes(free),
                   " free.\nSwap space: ", FormatBytes(full + clean), " of ",
                   FormatBytes(state.swap.limit()), " used");
  if (!clean.is_zero()) {
    absl::StrAppend(&text, ", of it ", FormatBytes(clean),
                    " by buffers that are on the device as well");
  }
  return text + ".";
}

std::string TriedText(const Request& request) {
  const Tried& tried = request.tried;
  std::string text;
  if (!tried.cached.is_zero()) {
    text = absl::StrCat(FormatBytes(tried.cached), " that jobs cached");
  }
  if (!tried.buffers.is_zero()) {
    absl::StrAppend(&text, text.empty() ? "" : " and ",
                    FormatBytes(tried.buffers), " of buffers");
  }
  if (text.empty() && tried.searches == 0) return "";
  if (text.empty()) text = "nothing, for nothing could leave";
  return absl::StrCat("Tried: in ", tried.searches,
                      tried.searches == 1 ? " attempt" : " attempts",
                      ", jobs were told to give back ", text, ".");
}

}  // namespace mets::core
