#include "client/ctl/doctor/doctor_command.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/ctl/doctor/daemon_checks.h"
#include "client/ctl/doctor/machine_checks.h"

namespace mets::ctl {

Findings Examine(const std::string& run_dir, const std::string& python) {
  const Machine machine;
  Findings all = CheckSockets(run_dir);
  const auto add = [&all](const Findings& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(CheckDaemon(run_dir));
  add({CheckHostMemory(machine), CheckHugePages(machine),
       CheckDriver(machine)});
  add(CheckForeign(machine));
  add({CheckPlugin(FindInstallation(), python), CheckBypassing(machine)});
  return all;
}

absl::Status DoctorCommand(const DoctorOptions& options,
                           const std::string& run_dir) {
  const Findings findings = Examine(run_dir, options.python);
  std::fputs((options.json ? ToJson(findings) : ToText(findings)).c_str(),
             stdout);
  const auto wrong = std::count_if(
      findings.begin(), findings.end(),
      [](const Finding& f) { return f.verdict == Verdict::kWrong; });
  if (wrong == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(wrong, wrong == 1 ? " thing is" : " things are", " wrong"));
}

}  // namespace mets::ctl
