#include "daemon/core/operating/operator_intake.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/operating/running_jobs.h"

namespace mets::core {

absl::Status OperatorIntake::SetDrained(const DrainDevice& input) {
  std::vector<std::string> names;
  for (Device& device : state_.devices) {
    names.push_back(device.config.name);
    if (device.config.name != input.device) continue;
    device.drained = input.drain;
    NoteCommand(state_, device.config.name, "",
                absl::StrCat(input.drain ? "drains " : "ended the draining of ",
                             device.config.name));
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("no device '", input.device,
                   "'; there are: ", absl::StrJoin(names, ", ")));
}

void OperatorIntake::OnDrain(const DrainDevice& input) {
  CommandDone done;
  done.call = input.call;
  done.status = SetDrained(input);
  state_.Send(OperatorAction(std::move(done)));
}

void OperatorIntake::SetPaused(Job& job, bool paused) {
  if (job.paused == paused) return;
  job.paused = paused;
  for (SessionId id : job.sessions) {
    if (!state_.sessions.Find(id)->connected()) continue;
    state_.Send(SendNotice{
        id, paused ? absl::StrCat("the operator has paused job '", job.name,
                                  "': it computes again after metsctl resume ",
                                  job.name)
                   : absl::StrCat("the operator has resumed job '", job.name,
                                  "'")});
  }
}

void OperatorIntake::OnPause(const PauseJob& input) {
  CommandDone done;
  done.call = input.call;
  const absl::StatusOr<std::vector<Job*>> jobs = RunningJobs(state_, input.job);
  done.status = jobs.status();
  if (jobs.ok()) {
    for (Job* job : *jobs) SetPaused(*job, input.pause);
    for (Device& device : state_.devices) device.turns_stir = true;
    NoteCommand(
        state_, "", input.job,
        absl::StrCat(input.pause ? "paused '" : "resumed '", input.job, "'"));
  }
  state_.Send(OperatorAction(std::move(done)));
}

void OperatorIntake::OnEvict(const EvictJob& input) {
  const absl::StatusOr<std::vector<Job*>> jobs = RunningJobs(state_, input.job);
  if (jobs.ok()) {
    NoteCommand(state_, "", input.job,
                absl::StrCat("had '", input.job, "' evicted"));
    emptier_.Begin(input.call, *jobs);
    return;
  }
  CommandDone done;
  done.call = input.call;
  done.status = jobs.status();
  state_.Send(OperatorAction(std::move(done)));
}

void OperatorIntake::OnKill(const KillJob& input) {
  CommandDone done;
  done.call = input.call;
  EndProcesses end;
  end.grace = input.grace;
  const absl::StatusOr<std::vector<Job*>> jobs = RunningJobs(state_, input.job);
  done.status = jobs.status();
  if (jobs.ok()) {
    for (const Job* job : *jobs) {
      end.sessions.insert(end.sessions.end(), job->sessions.begin(),
                          job->sessions.end());
    }
    done.processes = static_cast<int>(end.sessions.size());
    NoteCommand(state_, "", input.job, absl::StrCat("ended '", input.job, "'"));
    state_.Send(OperatorAction(std::move(end)));
  }
  state_.Send(OperatorAction(std::move(done)));
}

}  // namespace mets::core
