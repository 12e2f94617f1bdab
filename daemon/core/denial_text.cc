#include "daemon/core/denial_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mets::core {
namespace {

constexpr size_t kMostHolders = 16;
constexpr char kHeldBack[] =
    " For a part of that time it was held back, because copies for it would "
    "have slowed down a job of higher priority (--interference-bound).";

struct JobSums {
  Bytes resident, swapped, pinned, cached;
};

JobSums Sum(const State& state, const Job& job, size_t device) {
  JobSums sums;
  for (SessionId id : job.sessions) {
    const Holding& holding = state.sessions.all().at(id).holdings[device];
    sums.resident += holding.resident();
    sums.swapped += holding.buffers.swapped();
    sums.pinned += std::min(holding.pinned, holding.resident());
    sums.cached += holding.cached;
  }
  return sums;
}

std::string HolderLine(const Job& job, const JobSums& sums) {
  std::string line =
      absl::StrCat("job '", job.name, "': ", FormatBytes(sums.resident),
                   " resident, ", FormatBytes(sums.swapped), " swapped, ",
                   FormatBytes(sums.pinned), " pinned");
  if (!sums.cached.is_zero()) {
    absl::StrAppend(&line, ", ", FormatBytes(sums.cached), " cached");
  }
  return line;
}

bool AtLimit(const State& state, size_t device, const Request& request,
             const Job& job) {
  return !job.limit.is_zero() &&
         state.sessions.JobBytes(job, device) + request.total > job.limit;
}

std::string LimitAdvice(const Job& job) {
  return absl::StrCat("raise the limit of job '", job.name, "' (metsctl limit ",
                      job.name,
                      " SIZE, or METS_LIMIT), or make its batches smaller");
}

// Why, and what to do about it.
std::pair<std::string, std::string> Explain(const State& state, size_t index,
                                            const Request& request,
                                            const Job& job) {
  const Device& device = state.devices[index];
  if (request.overdraft && !request.has_token) {
    return {
        "another op whose need is not known in advance holds the device's "
        "overdraft token",
        "wait longer (METS_WAIT) or run fewer jobs at once"};
  }
  if (AtLimit(state, index, request, job)) {
    return {absl::StrCat("the job is at its limit of ", FormatBytes(job.limit)),
            LimitAdvice(job)};
  }
  if (!device.create_error.empty()) {
    return {absl::StrCat("the device could not create memory: ",
                         device.create_error),
            "free memory on the machine, or start metsd with a smaller pool "
            "(--device)"};
  }
  const std::string wait = "wait longer (METS_WAIT)";
  switch (device.obstacle) {
    case Obstacle::kSwapFull:
      if (!state.swap_error.empty()) {
        return {absl::StrCat("swap space could not grow: ", state.swap_error),
                "free memory on the machine, or start metsd with less swap "
                "space (--swap-space)"};
      }
      return {absl::StrCat("swap space is full (limit ",
                           FormatBytes(state.swap.limit()), ")"),
              "start metsd with more swap space (--swap-space), or end a job"};
    case Obstacle::kPinned:
      return {"only memory that is pinned, held or fixed is left",
              absl::StrCat(wait,
                           ", make batches smaller, or start metsd with "
                           "a larger pool (--device)")};
    case Obstacle::kProtected:
      return {"what is left is guaranteed to active jobs",
              absl::StrCat(wait, ", or lower guarantees (METS_GUARANTEE)")};
    case Obstacle::kSilent:
      return {"jobs that hold memory do not answer",
              "end or continue the stopped jobs"};
    case Obstacle::kNone:
      break;
  }
  return {"others use the memory or stand before it in the queue",
          absl::StrCat(wait,
                       ", lower limits of other jobs (metsctl limit JOB "
                       "SIZE), or start metsd with a larger pool "
                       "(--device)")};
}

Deny MakeDeny(SessionId session, RequestId id, const std::string& what,
              std::vector<std::string> holders, const std::string& advice,
              bool impossible) {
  Deny deny;
  deny.session = session;
  deny.request = id;
  deny.reason = what;
  if (!holders.empty()) {
    absl::StrAppend(&deny.reason, "\nHolders:\n  ",
                    absl::StrJoin(holders, "\n  "));
  }
  if (!advice.empty()) absl::StrAppend(&deny.reason, "\nAdvice: ", advice);
  deny.holders = std::move(holders);
  deny.advice = advice;
  deny.impossible = impossible;
  return deny;
}

}  // namespace

std::string AskedText(const State& state, size_t device, const Session& session,
                      Bytes total) {
  return absl::StrCat(FormatBytes(total), " on ",
                      state.devices[device].config.name, " for job '",
                      session.job->name, "'");
}

std::vector<std::string> HolderLines(const State& state, size_t device) {
  std::vector<std::pair<Bytes, const Job*>> holders;
  for (const auto& [key, job] : state.sessions.jobs()) {
    const JobSums sums = Sum(state, job, device);
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
    lines.push_back(HolderLine(*job, Sum(state, *job, device)));
  }
  return lines;
}

Deny DenyOverdue(const State& state, size_t device, const Request& request,
                 const Session& session) {
  const auto [why, advice] = Explain(state, device, request, *session.job);
  const absl::Duration waited = state.now - request.arrived;
  const std::string what =
      request.ranges.empty()
          ? absl::StrCat("the overdraft token of ",
                         state.devices[device].config.name, " for job '",
                         session.job->name, "'")
          : AskedText(state, device, session, request.total);
  return MakeDeny(
      request.session, request.id,
      absl::StrCat(what, " could not be had",
                   request.no_wait
                       ? std::string(" without waiting")
                       : absl::StrCat(" within ", absl::FormatDuration(waited)),
                   ": ", why, ".", request.held_back ? kHeldBack : ""),
      HolderLines(state, device), advice, false);
}

Failure FailureOf(const State& state, size_t index, const Request& request,
                  const Job& job) {
  const Device& device = state.devices[index];
  if (request.overdraft && !request.has_token) return Failure::kTimeout;
  if (AtLimit(state, index, request, job)) return Failure::kLimit;
  if (!device.create_error.empty()) return Failure::kDevice;
  switch (device.obstacle) {
    case Obstacle::kSwapFull:
      return Failure::kSwapFull;
    case Obstacle::kPinned:
      return Failure::kPinned;
    case Obstacle::kProtected:
      return Failure::kGuarantee;
    case Obstacle::kSilent:
      return Failure::kUnresponsive;
    case Obstacle::kNone:
      break;
  }
  return Failure::kTimeout;
}

Deny DenyLargerThanPool(const State& state, size_t device, RequestId id,
                        const Session& session, Bytes total) {
  return MakeDeny(
      session.id, id,
      absl::StrCat(AskedText(state, device, session, total),
                   " is more than the whole pool of ",
                   FormatBytes(state.devices[device].ledger.pool()), "."),
      {},
      "make the tensor or the batch smaller, or start metsd with a larger pool "
      "(--device)",
      true);
}

Deny DenyLargerThanLimit(const State& state, size_t device, RequestId id,
                         const Session& session, Bytes total) {
  return MakeDeny(session.id, id,
                  absl::StrCat(AskedText(state, device, session, total),
                               " is more than the job's limit of ",
                               FormatBytes(session.job->limit), "."),
                  {}, LimitAdvice(*session.job), true);
}

Deny DenyPlain(SessionId session, RequestId id, std::string reason,
               bool impossible) {
  return MakeDeny(session, id, reason, {}, "", impossible);
}

}  // namespace mets::core
