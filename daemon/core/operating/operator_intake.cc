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
    state_.turns_stir = true;
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

void OperatorIntake::OnRestore(const RestoreSettings& input) {
  for (const std::string& name : input.settings.drained) {
    size_t index = 0;
    Device* device = name.empty() ? nullptr : state_.FindDevice(name, &index);
    if (device != nullptr) device->drained = true;
  }
  for (const OperatorSettings::Job& setting : input.settings.jobs) {
    Job* job = state_.sessions.FindJob(setting.domain, setting.name);
    if (job == nullptr) continue;
    job->paused = setting.paused;
    job->set_limit = setting.limit;
    if (setting.limit.has_value()) job->limit = *setting.limit;
  }
}

OperatorSettings SettingsOf(const State& state) {
  OperatorSettings settings;
  for (const Device& device : state.devices) {
    if (device.drained) settings.drained.push_back(device.config.name);
  }
  for (const auto& [key, job] : state.sessions.jobs()) {
    if (job.sessions.empty() || (!job.paused && !job.set_limit.has_value())) {
      continue;
    }
    settings.jobs.push_back({job.domain, job.name, job.paused, job.set_limit});
  }
  return settings;
}

}  // namespace mets::core
