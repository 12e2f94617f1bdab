#include "client/src/env.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/base/weight.h"

namespace mets::client {
namespace {

std::string Env(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultRunDir() {
  const std::string set = Env("METS_RUN_DIR");
  if (!set.empty()) return set;
  const std::string xdg = Env("XDG_RUNTIME_DIR");
  if (geteuid() != 0 && !xdg.empty()) return absl::StrCat(xdg, "/mets");
  return "/run/mets";
}

// The program's name and pid, as a job name.
std::string DefaultJob() {
  std::string name = program_invocation_short_name;
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_') c = '-';
  }
  if (name.size() > 50) name.resize(50);
  return absl::StrCat(name, "-", getpid());
}

absl::StatusOr<Bytes> SizeWish(uint64_t option, const char* variable) {
  if (option > uint64_t{1} << 62) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " bytes are more than any device has"));
  }
  if (option != 0) return Bytes(static_cast<int64_t>(option));
  const std::string text = Env(variable);
  if (text.empty()) return Bytes();
  absl::StatusOr<Bytes> parsed = ParseBytes(text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(variable, ": ", parsed.status().message()));
  }
  return parsed;
}

absl::StatusOr<int> PriorityWish(int32_t option) {
  if (option != 0) return option;
  const std::string text = Env("METS_PRIORITY");
  int priority = 0;
  if (!text.empty() && !absl::SimpleAtoi(text, &priority)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "METS_PRIORITY: '", text, "' is no whole number, such as 0 or -5"));
  }
  return priority;
}

absl::StatusOr<int> WeightWish() {
  const std::string text = Env("METS_WEIGHT");
  int weight = 1;
  if (!text.empty() &&
      (!absl::SimpleAtoi(text, &weight) || !IsWeight(weight))) {
    return absl::InvalidArgumentError(
        absl::StrCat("METS_WEIGHT: '", text, "' is no whole number from 1 to ",
                     kMostWeight));
  }
  return weight;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseWait(const std::string& text) {
  if (text == "forever") return absl::InfiniteDuration();
  if (text == "fail") return absl::ZeroDuration();
  absl::Duration wait;
  if (absl::ParseDuration(text, &wait) && wait >= absl::ZeroDuration()) {
    return wait;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "METS_WAIT: '", text,
      "' is no duration; use e.g. '60s', '5m', 'forever' or 'fail'"));
}

absl::StatusOr<Settings> ReadSettings(const mets_open_options* options) {
  mets_open_options given = METS_OPEN_OPTIONS_INIT;
  if (options != nullptr) given = *options;
  Settings settings;
  settings.run_dir = given.run_dir != nullptr ? given.run_dir : DefaultRunDir();
  settings.program = program_invocation_short_name;
  settings.job = given.job != nullptr ? given.job : Env("METS_JOB");
  if (settings.job.empty() && given.job == nullptr) {
    settings.job = DefaultJob();
  }
  if (absl::Status valid = ValidateJobName(settings.job); !valid.ok()) {
    return absl::FailedPreconditionError(valid.message());
  }
  METS_ASSIGN_OR_RETURN(settings.limit,
                        SizeWish(given.limit_bytes, "METS_LIMIT"));
  METS_ASSIGN_OR_RETURN(settings.guarantee,
                        SizeWish(given.guarantee_bytes, "METS_GUARANTEE"));
  METS_ASSIGN_OR_RETURN(settings.priority, PriorityWish(given.priority));
  METS_ASSIGN_OR_RETURN(settings.weight, WeightWish());
  METS_ASSIGN_OR_RETURN(settings.phantom, SizeWish(0, "METS_PHANTOM_EVICTION"));
  const std::string wait = Env("METS_WAIT");
  if (!wait.empty()) {
    METS_ASSIGN_OR_RETURN(settings.wait, ParseWait(wait));
  }
  return settings;
}

}  // namespace mets::client
