#include "daemon/core/operating/running_jobs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mets::core {

absl::StatusOr<std::vector<Job*>> RunningJobs(State& state,
                                              const std::string& name) {
  std::vector<Job*> jobs;
  std::vector<std::string> known;
  for (auto& [key, job] : state.sessions.jobs()) {
    if (job.sessions.empty()) continue;
    known.push_back(job.name);
    if (job.name == name) jobs.push_back(&job);
  }
  if (!jobs.empty()) return jobs;
  return absl::NotFoundError(
      absl::StrCat("no job '", name, "' is running; ",
                   known.empty() ? "there are none" : "there are: ",
                   absl::StrJoin(known, ", ")));
}

}  // namespace mets::core
