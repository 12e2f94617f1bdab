#include "daemon/core/reports/why.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/duration_text.h"
#include "daemon/core/reports/denial_text.h"
#include "daemon/core/reports/memory_report.h"

namespace mets::core {
namespace {

const TurnParty* PartyOf(const State& state, const Job& job, size_t device) {
  return state.turns.Find({job.domain, job.name}, device);
}

const Request* OldestWaiting(const State& state, const Job& job,
                             size_t device) {
  for (const auto& [number, request] : state.devices[device].queue.all()) {
    const bool own = job.sessions.count(request.session) > 0;
    if (own && !request.assembling && request.waited) return &request;
  }
  return nullptr;
}

bool HasSilentProcess(const State& state, const Job& job) {
  return std::any_of(
      job.sessions.begin(), job.sessions.end(),
      [&](SessionId id) { return state.sessions.all().at(id).unresponsive; });
}

bool IsAway(const State& state, const Job& job) {
  return std::none_of(
      job.sessions.begin(), job.sessions.end(),
      [&](SessionId id) { return state.sessions.all().at(id).connected(); });
}

// How many requests the device serves before this one.
int Before(const State& state, size_t device, const Request& request) {
  int before = 0;
  for (const auto& [number, other] : state.devices[device].queue.all()) {
    before += other.priority > request.priority ||
              (other.priority == request.priority && number < request.number);
  }
  return before;
}

// What other jobs have that nobody uses now, and what guarantees keep.
std::vector<std::string> UnusedMemory(const State& state, const Job& job,
                                      size_t device) {
  Bytes cached, idle, kept;
  for (const auto& [key, other] : state.sessions.jobs()) {
    if (&other == &job) continue;
    const JobSums sums = SumJob(state, other, device);
    cached += sums.cached;
    if (!state.JobActive(other)) idle += sums.resident;
    if (state.JobActive(other)) {
      kept += std::min(other.guarantee, sums.resident);
    }
  }
  std::vector<std::string> lines;
  const auto add = [&lines](Bytes bytes, const char* text) {
    if (!bytes.is_zero()) lines.push_back(FormatBytes(bytes) + text);
  };
  add(cached, " are cached by other jobs");
  add(idle, " belong to jobs that have been idle for a second or longer");
  add(kept, " are guaranteed to other active jobs (METS_GUARANTEE)");
  return lines;
}

void ExplainMemory(const State& state, const Job& job, size_t device,
                   const Request& request, WhyAnswer* answer) {
  const Session& session = state.sessions.all().at(request.session);
  answer->summary = absl::StrCat(
      "waits for ", FormatBytes(request.total), " since ",
      DurationText(state.now - request.arrived),
      request.deadline == absl::InfiniteFuture()
          ? ", without a deadline"
          : absl::StrCat(", for at most ",
                         DurationText(request.deadline - state.now), " more"));
  answer->report = RequestText(
      state, device, request, session,
      absl::StrCat("has waited ", DurationText(state.now - request.arrived)));
  const int before = Before(state, device, request);
  if (before > 0) {
    answer->reasons.push_back(
        absl::StrCat(before, before == 1 ? " request is" : " requests are",
                     " served before"));
  }
  for (std::string& line : UnusedMemory(state, job, device)) {
    answer->reasons.push_back(std::move(line));
  }
}

std::string NamesOf(const State& state, const std::vector<size_t>& devices) {
  std::vector<std::string> names;
  for (size_t i : devices) names.push_back(state.devices[i].config.name);
  return absl::StrJoin(names, ", ");
}

// The others that have a turn there.
void AddWhoHas(const State& state, const Job& job, size_t device,
               WhyAnswer* answer) {
  const bool here = state.devices[device].config.name == answer->device;
  for (const auto& [key, other] : state.sessions.jobs()) {
    const TurnParty* its = PartyOf(state, other, device);
    if (&other == &job || its == nullptr || !its->running() ||
        its->On(device) == nullptr) {
      continue;
    }
    answer->reasons.push_back(absl::StrCat(
        "'", other.name, "' has ",
        here ? "the device" : state.devices[device].config.name, " since ",
        DurationText(state.now - its->opened),
        its->phase == TurnParty::Phase::kClosing ? ", and was told to stop"
                                                 : ""));
  }
}

// Who computes instead, and what all would need together.
void ExplainTurn(const State& state, const Job& job, size_t device,
                 WhyAnswer* answer) {
  const TurnParty& party = *PartyOf(state, job, device);
  answer->summary = party.wants
                        ? absl::StrCat("waits for its turn since ",
                                       DurationText(state.now - party.wanted))
                        : "its gate is closed, and nothing of it waits there";
  std::vector<std::string> needs;
  Bytes sum;
  for (const auto& [key, other] : state.sessions.jobs()) {
    const TurnParty* its = PartyOf(state, other, device);
    const TurnPart* part = its == nullptr ? nullptr : its->On(device);
    if (part == nullptr || part->peak().is_zero() ||
        (&other != &job && !its->running() && !its->waiting())) {
      continue;
    }
    sum += part->peak();
    needs.push_back(
        absl::StrCat("'", other.name, "' ", FormatBytes(part->peak())));
  }
  const std::vector<size_t> devices = state.turns.TurnDevices(party);
  if (devices.size() > 1) {
    answer->reasons.push_back(absl::StrCat(
        "its turns are on ", NamesOf(state, devices), " at the same time"));
  }
  for (size_t i : devices) AddWhoHas(state, job, i, answer);
  const Bytes pool = state.devices[device].ledger.pool();
  answer->reasons.push_back(
      absl::StrCat("the jobs' steps need ", absl::StrJoin(needs, ", "), ": ",
                   FormatBytes(sum), " of a pool of ", FormatBytes(pool)));
  if (sum > pool) {
    answer->advice.push_back(absl::StrCat(
        "all would compute at once with ", FormatBytes(sum - pool),
        " more pool (--device), or with batches that are as much smaller"));
  }
  answer->advice.push_back(
      absl::StrCat("a higher priority (METS_PRIORITY, now ", job.priority,
                   ") goes first; a larger weight (METS_WEIGHT, now ",
                   job.weight, ") gets more of the time"));
}

// The most that the job's present processes have had; they report it with a
// delay, and between steps they have less.
Bytes MostOf(const State& state, const Job& job, size_t device) {
  const JobSums sums = SumJob(state, job, device);
  Bytes peaks;
  for (SessionId id : job.sessions) {
    peaks += state.sessions.all().at(id).holdings[device].totals.peak_live;
  }
  return std::max(peaks, sums.resident + sums.swapped);
}

// Why not all that a job has is on the device.
void ExplainSwapped(const State& state, const Job& job, size_t device,
                    WhyAnswer* answer) {
  const JobSums sums = SumJob(state, job, device);
  if (sums.swapped.is_zero()) return;
  const std::string what =
      absl::StrCat(FormatBytes(sums.swapped), " of it are swapped");
  const Bytes most = MostOf(state, job, device);
  if (!job.limit.is_zero() && most > job.limit) {
    answer->reasons.push_back(
        absl::StrCat(what, ", for its limit of ", FormatBytes(job.limit)));
    answer->advice.push_back(absl::StrCat("a higher limit: metsctl limit ",
                                          job.name, " SIZE; it has had ",
                                          FormatBytes(most)));
    return;
  }
  Bytes all;
  for (const auto& [key, other] : state.sessions.jobs()) {
    all += MostOf(state, other, device);
  }
  if (all <= state.devices[device].ledger.pool()) {
    answer->reasons.push_back(
        absl::StrCat(what, "; they come back when ops use them"));
    return;
  }
  answer->reasons.push_back(
      absl::StrCat(what,
                   ", because the jobs together have more than the "
                   "device; they come back when ops use them"));
  answer->advice.push_back(
      "fewer jobs at once or smaller batches; METS_GUARANTEE keeps bytes of it "
      "on the device, METS_PRIORITY takes others' first");
}

WhyAnswer Answer(const State& state, const Job& job, size_t device) {
  WhyAnswer answer;
  answer.job = job.name;
  answer.device = state.devices[device].config.name;
  answer.phase = PhaseOf(state, job, device);
  switch (answer.phase) {
    case JobPhase::kWaitsForMemory:
      ExplainMemory(state, job, device, *OldestWaiting(state, job, device),
                    &answer);
      break;
    case JobPhase::kWaitsForTurn:
      ExplainTurn(state, job, device, &answer);
      break;
    case JobPhase::kSilent:
      answer.summary = "a process of it does not answer metsd";
      answer.advice.push_back(
          "see whether it is stopped (kill -CONT) or hangs");
      break;
    case JobPhase::kAway:
      answer.summary = "its processes are not connected to metsd now";
      break;
    case JobPhase::kPaused:
      answer.summary = "was paused by an operator: no op of it starts";
      answer.advice.push_back(absl::StrCat("metsctl resume ", job.name));
      break;
    case JobPhase::kIdle:
      answer.summary = absl::StrCat("is idle since ",
                                    DurationText(state.now - job.last_active),
                                    ": it uses no memory and waits for none");
      ExplainSwapped(state, job, device, &answer);
      break;
    case JobPhase::kComputes:
      answer.summary = "computes: it waits for nothing";
      ExplainSwapped(state, job, device, &answer);
      break;
  }
  return answer;
}

}  // namespace

JobPhase PhaseOf(const State& state, const Job& job, size_t device) {
  if (IsAway(state, job)) return JobPhase::kAway;
  if (HasSilentProcess(state, job)) return JobPhase::kSilent;
  if (job.paused) return JobPhase::kPaused;
  if (OldestWaiting(state, job, device) != nullptr) {
    return JobPhase::kWaitsForMemory;
  }
  const TurnParty* party = PartyOf(state, job, device);
  if (party != nullptr && party->stopped() && party->wants) {
    return JobPhase::kWaitsForTurn;
  }
  return state.JobActive(job) ? JobPhase::kComputes : JobPhase::kIdle;
}

std::vector<WhyAnswer> WhyOf(const State& state, const std::string& name) {
  std::vector<WhyAnswer> answers;
  for (const auto& [key, job] : state.sessions.jobs()) {
    if (job.name != name) continue;
    for (size_t i = 0; i < state.devices.size(); ++i) {
      if (state.sessions.Attached(job, i)) {
        answers.push_back(Answer(state, job, i));
      }
    }
  }
  return answers;
}

}  // namespace mets::core
