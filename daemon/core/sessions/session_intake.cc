#include "daemon/core/sessions/session_intake.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/base/weight.h"
#include "daemon/core/costs/report_costs.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/operating/caps.h"
#include "daemon/core/operating/job_end.h"
#include "daemon/core/operating/running_jobs.h"
#include "daemon/core/sessions/session_exit.h"

namespace mets::core {
namespace {

// No wish is larger: sums of wishes do not overflow.
constexpr Bytes kLargestWish = GiB(int64_t{1} << 20);

Bytes SmallerWish(Bytes held, Bytes wish) {
  if (held.is_zero() || wish.is_zero()) return std::max(held, wish);
  return std::min(held, wish);
}

}  // namespace

std::string SessionIntake::OpenFault(const SessionOpened& input) const {
  if (absl::Status name = ValidateJobName(input.job); !name.ok()) {
    return std::string(name.message());
  }
  for (Bytes wish : {input.limit, input.guarantee}) {
    if (wish < Bytes() || wish > kLargestWish) {
      return absl::StrCat("a limit or guarantee of ", wish.count(),
                          " bytes is not possible");
    }
  }
  if (!input.limit.is_zero() && input.guarantee > input.limit) {
    return absl::StrCat("job '", input.job, "' asks for a guarantee of ",
                        FormatBytes(input.guarantee), " above its limit of ",
                        FormatBytes(input.limit),
                        "; lower METS_GUARANTEE or raise METS_LIMIT");
  }
  auto record = state_.sessions.all().find(input.recovers);
  if (record != state_.sessions.all().end() &&
      record->second.presence == Presence::kExpected &&
      (record->second.domain != input.domain ||
       record->second.job->name != input.job)) {
    return absl::StrCat("the process was job '", record->second.job->name,
                        "' before; it cannot come back as '", input.job, "'");
  }
  return "";
}

void SessionIntake::OnOpened(const SessionOpened& wish) {
  if (state_.sessions.Find(wish.session) != nullptr) return;
  std::string fault = OpenFault(wish);
  SessionOpened input = wish;
  std::string lowered = ApplyCaps(&input);
  if (!fault.empty()) {
    state_.Send(Refuse{input.session, std::move(fault)});
    return;
  }
  Session& session =
      state_.sessions.Add(input.session, input.domain, input.job);
  session.process = input.process;
  session.awaits_snapshot = input.expects_snapshot;
  session.recovering = input.expects_snapshot;
  state_.may_recover |= session.recovering;
  if (session.job->sessions.size() == 1) BeginJob(state_, *session.job);
  SetWishes(input, *session.job);
  TakeOverRecord(input.recovers, session);
  SendWelcome(session);
  if (!lowered.empty()) {
    state_.Send(SendNotice{session.id, std::move(lowered)});
  }
}

void SessionIntake::SendWelcome(const Session& session) {
  Welcome welcome;
  welcome.session = session.id;
  welcome.limit = session.job->limit;
  welcome.guarantee = session.job->guarantee;
  welcome.priority = session.job->priority;
  for (const Device& device : state_.devices) {
    welcome.devices.push_back(device.config.name);
  }
  state_.Send(std::move(welcome));
}

void SessionIntake::SetWishes(const SessionOpened& input, Job& job) {
  const bool first =
      std::none_of(job.sessions.begin(), job.sessions.end(), [&](SessionId id) {
        const Session& other = *state_.sessions.Find(id);
        return id != input.session && other.presence != Presence::kExpected;
      });
  if (first) {
    // What was set for processes that have ended since does not hold for it.
    if (job.sessions.size() == 1) job.set_limit.reset();
    job.uid = input.process.uid;
    job.limit = job.set_limit.value_or(input.limit);
    job.guarantee = input.guarantee;
    job.priority = std::clamp(input.priority, -kMostPriority, kMostPriority);
    job.weight = std::clamp(input.weight, 1, kMostWeight);
    for (SessionId id : job.sessions) state_.RefreshVictims(id);
  } else {
    const Bytes limit =
        job.set_limit.value_or(SmallerWish(job.limit, input.limit));
    if (limit != job.limit) {
      job.limit = limit;
      AnnounceLimit(job);
    }
    job.guarantee = SmallerWish(job.guarantee, input.guarantee);
  }
  if (!job.limit.is_zero()) {
    job.guarantee = std::min(job.guarantee, job.limit);
  }
}

void SessionIntake::TakeOverRecord(SessionId record, Session& session) {
  Session* old = state_.sessions.Find(record);
  if (old == nullptr || old->presence != Presence::kExpected) return;
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    session.holdings[i].orphan = old->holdings[i].orphan;
    old->holdings[i].orphan = Bytes();
  }
  session.known_before = true;
  state_.RemoveSession(*old);
}

void SessionIntake::OnLost(const SessionLost& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr) return;
  Silence(state_, *session);
  session->presence = Presence::kLost;
}

void SessionIntake::OnResumed(const SessionResumed& input) {
  Session* session = state_.sessions.Find(input.session);
  if (session == nullptr) return;
  if (session->presence == Presence::kRefused) {
    state_.Send(Refuse{input.session, "the session broke the rules before"});
    return;
  }
  if (session->presence == Presence::kExpected) return;
  if (session->connected()) Silence(state_, *session);
  session->presence = Presence::kConnected;
  session->awaits_snapshot = true;
  for (Device& device : state_.devices) {
    device.ledger.MarkUncertain(input.session);
  }
  for (auto& [extent, certain] : session->extents) certain = false;
  session->extents_seen = 0;
  SendWelcome(*session);
}

void SessionIntake::OnEnded(const SessionEnded& input) {
  Session* session = state_.sessions.Find(input.session);
  if (session == nullptr || session->presence == Presence::kExpected) return;
  EndSession(state_, retirement_, *session);
}

void SessionIntake::OnExpected(const ExpectSession& input) {
  if (state_.sessions.Find(input.session) != nullptr) return;
  Session& session =
      state_.sessions.Add(input.session, input.domain, input.job);
  session.presence = Presence::kExpected;
  session.process = input.process;
  if (session.job->sessions.size() == 1) BeginJob(state_, *session.job);
  state_.may_recover = true;
  for (const auto& [name, bytes] : input.held) {
    size_t index = 0;
    Device* device = state_.FindDevice(name, &index);
    if (device == nullptr || bytes <= Bytes() || bytes > kLargestWish) continue;
    session.holdings[index].orphan += bytes;
    device->ledger.ChangeOrphan(bytes);
  }
}

void SessionIntake::OnExpectedGone(const ExpectedSessionGone& input) {
  Session* session = state_.sessions.Find(input.session);
  if (session == nullptr || session->presence != Presence::kExpected) return;
  EndSession(state_, retirement_, *session);
}

std::string SessionIntake::GuaranteeFault(size_t index, const Job& job) const {
  const Device& device = state_.devices[index];
  Bytes sum = job.guarantee;
  std::vector<std::string> holders;
  for (const auto& [key, other] : state_.sessions.jobs()) {
    if (&other == &job || other.guarantee.is_zero() ||
        !state_.sessions.Attached(other, index)) {
      continue;
    }
    sum += other.guarantee;
    holders.push_back(
        absl::StrCat("job '", other.name, "': ", FormatBytes(other.guarantee)));
  }
  if (job.guarantee.is_zero() || sum <= device.ledger.pool()) return "";
  return absl::StrCat("a guarantee of ", FormatBytes(job.guarantee),
                      " for job '", job.name,
                      "' does not fit into the pool of ", device.config.name,
                      " (", FormatBytes(device.ledger.pool()), ")",
                      holders.empty() ? "" : "; guaranteed already: ",
                      absl::StrJoin(holders, ", "),
                      ". Lower METS_GUARANTEE, or end one of those jobs");
}

std::string SessionIntake::AttachFault(size_t index,
                                       const Session& session) const {
  const Device& device = state_.devices[index];
  const Job& job = *session.job;
  if (device.drained && !session.known_before &&
      !state_.sessions.Attached(job, index)) {
    return absl::StrCat("device ", device.config.name,
                        " takes no new jobs: it is being drained; use another "
                        "device, or ask its operator (metsctl undrain ",
                        device.config.name, ")");
  }
  return GuaranteeFault(index, job);
}

void SessionIntake::OnAttach(const AttachDevice& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr) return;
  DeviceReady ready;
  ready.session = input.session;
  ready.device = input.device;
  size_t index = 0;
  Device* device = state_.FindDevice(input.device, &index);
  if (device == nullptr) {
    std::vector<std::string> names;
    for (const Device& d : state_.devices) names.push_back(d.config.name);
    ready.error = absl::StrCat("no device '", input.device,
                               "'; there are: ", absl::StrJoin(names, ", "));
    state_.Send(std::move(ready));
    return;
  }
  Holding& holding = session->holdings[index];
  ready.device = device->config.name;
  ready.kind = device->config.kind;
  ready.pool = device->ledger.pool();
  ready.chunk_classes = device->ledger.classes();
  const bool first = !holding.attached;
  if (!holding.attached) ready.error = AttachFault(index, *session);
  if (!ready.error.empty()) {
    const bool full =
        !device->drained || state_.sessions.Attached(*session->job, index);
    NoteFailure(*session->job, index,
                full ? Failure::kGuarantee : Failure::kDrained);
    NoteDevice(state_, EventKind::kDenied, *session->job, index, ready.error);
  }
  holding.attached = ready.error.empty();
  holding.gated = !input.ops_seen;
  if (first && holding.attached && !session->recovering) {
    NoteDevice(state_, EventKind::kAttached, *session->job, index);
  }
  state_.tight_stir = true;
  state_.ready.push_back(std::move(ready));
}

absl::Status SessionIntake::ApplyLimit(const SetJobLimit& input) {
  if (input.limit < Bytes() || input.limit > kLargestWish) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a limit of ", input.limit.count(), " bytes is not possible"));
  }
  METS_ASSIGN_OR_RETURN(const std::vector<Job*> jobs,
                        RunningJobs(state_, input.job));
  for (const Job* job : jobs) {
    if (input.limit.is_zero() || input.limit >= job->guarantee) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a limit of ", FormatBytes(input.limit),
                     " is below the guarantee of job '", job->name, "', ",
                     FormatBytes(job->guarantee)));
  }
  for (Job* job : jobs) {
    job->limit = input.limit;
    job->set_limit = input.limit;
    AnnounceLimit(*job);
    NoteLimit(state_, *job);
  }
  return absl::OkStatus();
}

void SessionIntake::AnnounceLimit(const Job& job) {
  for (SessionId id : job.sessions) {
    const Session& session = *state_.sessions.Find(id);
    for (size_t i = 0; i < state_.devices.size(); ++i) {
      if (!session.connected() || !session.holdings[i].attached) continue;
      state_.Send(LimitsChanged{id, state_.devices[i].config.name, job.limit,
                                session.holdings[i].told_tight});
    }
  }
  state_.WatchLimit(job);
  state_.StirAll();
}

void SessionIntake::OnSetJobLimit(const SetJobLimit& input) {
  state_.Send(JobLimitSet{input.call, ApplyLimit(input)});
}

void SessionIntake::OnStop() {
  for (const auto& [id, session] : state_.sessions.all()) {
    if (session.connected()) {
      state_.Send(SendBye{id, "metsd is stopping", true});
    }
  }
}

}  // namespace mets::core
