#include "daemon/core/reports/denial_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/duration_text.h"
#include "daemon/core/reports/memory_report.h"

namespace mets::core {
namespace {

constexpr char kHeldBack[] =
    " For a part of that time it was held back, because copies for it would "
    "have slowed down a job of higher priority (--interference-bound).";

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

Deny MakeDeny(SessionId session, RequestId id, const std::string& what,
              const std::string& advice, bool impossible) {
  Deny deny;
  deny.session = session;
  deny.request = id;
  deny.reason = what;
  if (!advice.empty()) absl::StrAppend(&deny.reason, "\nAdvice: ", advice);
  deny.advice = advice;
  deny.impossible = impossible;
  return deny;
}

// What is not used may still be on its way, or another domain's.
bool HasSwapRoom(const State& state) {
  Bytes used;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    used += state.swap.bytes(i, SlotState::kFull) +
            state.swap.bytes(i, SlotState::kClean);
  }
  return used.count() < state.swap.limit().count() / 10 * 9;
}

bool IsAlone(const State& state, size_t index, const Job& job) {
  const auto& all = state.sessions.all();
  return std::all_of(all.begin(), all.end(), [&](const auto& entry) {
    const Session& session = entry.second;
    return session.job == &job || session.holdings[index].own().is_zero();
  });
}

}  // namespace

Obstruction Explain(const State& state, size_t index, const Request& request,
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
      return {absl::StrCat(HasSwapRoom(state) ? "swap space has no place for "
                                                "it yet (limit "
                                              : "swap space is full (limit ",
                           FormatBytes(state.swap.limit()), ")"),
              "start metsd with more swap space (--swap-space), or end a job"};
    case Obstacle::kPinned:
      if (IsAlone(state, index, job)) {
        return {"only memory that is pinned, held or fixed is left, all of it "
                "the job's own",
                "make batches smaller, or start metsd with a larger pool "
                "(--device)"};
      }
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
    case Obstacle::kUntold:
      return {"jobs that hold memory have not told yet what of it can leave",
              absl::StrCat(wait,
                           "; a process that is stopped tells nothing: "
                           "end or continue it")};
    case Obstacle::kNone:
      break;
  }
  return {"others use the memory or stand before it in the queue",
          absl::StrCat(wait,
                       ", lower limits of other jobs (metsctl limit JOB "
                       "SIZE), or start metsd with a larger pool "
                       "(--device)")};
}

std::string AskedText(const State& state, size_t device, const Session& session,
                      Bytes total) {
  return absl::StrCat(FormatBytes(total), " on ",
                      state.devices[device].config.name, " for job '",
                      session.job->name, "'");
}

std::string RequestText(const State& state, size_t device,
                        const Request& request, const Session& session,
                        const std::string& fate) {
  const Obstruction obstruction = Explain(state, device, request, *session.job);
  const std::string asked =
      request.ranges.empty()
          ? absl::StrCat("the overdraft token of ",
                         state.devices[device].config.name, " for job '",
                         session.job->name, "'")
          : AskedText(state, device, session, request.total);
  std::string text = absl::StrCat(asked, " ", fate, ": ", obstruction.why, ".",
                                  request.held_back ? kHeldBack : "", "\n",
                                  RoomText(state, device));
  const std::vector<std::string> holders = HolderLines(state, device);
  if (!holders.empty()) {
    absl::StrAppend(&text, "\nHolders:\n  ", absl::StrJoin(holders, "\n  "));
  }
  const std::string tried = TriedText(request);
  if (!tried.empty()) absl::StrAppend(&text, "\n", tried);
  return absl::StrCat(text, "\nAdvice: ", obstruction.advice);
}

Deny DenyOverdue(const State& state, size_t device, const Request& request,
                 const Session& session) {
  const absl::Duration waited = state.now - request.arrived;
  const std::string fate =
      request.no_wait
          ? "could not be had without waiting"
          : absl::StrCat("could not be had within ", DurationText(waited));
  Deny deny;
  deny.session = request.session;
  deny.request = request.id;
  deny.reason = RequestText(state, device, request, session, fate);
  deny.holders = HolderLines(state, device);
  deny.advice = Explain(state, device, request, *session.job).advice;
  return deny;
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
    case Obstacle::kUntold:
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
                  LimitAdvice(*session.job), true);
}

Deny DenyPlain(SessionId session, RequestId id, std::string reason,
               bool impossible) {
  return MakeDeny(session, id, reason, "", impossible);
}

}  // namespace mets::core
