#include "client/ctl/operator_commands.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/bytes.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(50);
// From SIGKILL until the daemon has seen the end.
constexpr absl::Duration kKilledWithin = absl::Seconds(5);

absl::StatusOr<int> CountSessions(AdminClient& client, const std::string& job) {
  METS_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client.GetStatus());
  int sessions = 0;
  for (const v1::JobStatus& entry : status.jobs()) {
    if (entry.name() == job) sessions += entry.sessions();
  }
  return sessions;
}

}  // namespace

absl::Status EvictCommand(AdminClient& client, const std::string& job) {
  METS_ASSIGN_OR_RETURN(const v1::EvictJobResponse done, client.EvictJob(job));
  std::printf("%s have left the devices, %s stay%s\n",
              FormatBytes(Bytes(done.evicted_bytes())).c_str(),
              FormatBytes(Bytes(done.left_bytes())).c_str(),
              done.left_bytes() == 0
                  ? ""
                  : ": pinned, held, in use again, or of processes that do not "
                    "answer");
  return absl::OkStatus();
}

absl::Status KillCommand(AdminClient& client, const std::string& job,
                         absl::Duration grace) {
  METS_ASSIGN_OR_RETURN(const int processes, client.KillJob(job, grace));
  const absl::Time begin = absl::Now();
  const absl::Time until = begin + grace + kKilledWithin;
  while (true) {
    METS_ASSIGN_OR_RETURN(const int left, CountSessions(client, job));
    if (left == 0) break;
    if (absl::Now() > until) {
      return absl::DeadlineExceededError(absl::StrCat(
          left, " of ", processes, " processes of job '", job,
          "' live on: metsd may not signal them (it needs CAP_KILL for other "
          "users' processes, and reaches none outside its pid namespace)"));
    }
    absl::SleepFor(kLookEvery);
  }
  std::printf("%d %s ended after %.1f s\n", processes,
              processes == 1 ? "process has" : "processes have",
              absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

OperatorCommands::OperatorCommands(CLI::App& app) {
  Add(app, "drain", "Let a device take no new jobs; those that use it go on",
      "DEVICE", [this](AdminClient& client) {
        return client.DrainDevice(operand_, true);
      });
  Add(app, "undrain", "Let a device take new jobs again", "DEVICE",
      [this](AdminClient& client) {
        return client.DrainDevice(operand_, false);
      });
  Add(app, "pause", "Let no op of a job start; running ones end", "JOB",
      [this](AdminClient& client) { return client.PauseJob(operand_, true); });
  Add(app, "resume", "Let the ops of a paused job start again", "JOB",
      [this](AdminClient& client) { return client.PauseJob(operand_, false); });
  Add(app, "evict", "Bring what a job has on the devices into swap space",
      "JOB",
      [this](AdminClient& client) { return EvictCommand(client, operand_); });
  Add(app, "kill", "End a job's processes: SIGTERM, and SIGKILL later", "JOB",
      [this](AdminClient& client) {
        return KillCommand(client, operand_, absl::Seconds(grace_seconds_));
      });
  commands_.back()
      .app
      ->add_option("--grace", grace_seconds_,
                   "Seconds from SIGTERM to SIGKILL; default 10")
      ->check(CLI::Range(0.0, 3600.0))
      ->type_name("N");
}

void OperatorCommands::Add(CLI::App& app, const char* name, const char* help,
                           const char* operand, Action action) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option(operand, operand_)->required();
  commands_.push_back({command, std::move(action)});
}

bool OperatorCommands::parsed() const {
  return std::any_of(commands_.begin(), commands_.end(),
                     [](const Command& c) { return c.app->parsed(); });
}

absl::Status OperatorCommands::Run(const std::string& run_dir) {
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  for (const Command& command : commands_) {
    if (command.app->parsed()) return command.action(client);
  }
  return absl::InternalError("no command");
}

}  // namespace mets::ctl
