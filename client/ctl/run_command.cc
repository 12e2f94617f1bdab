#include "client/ctl/run_command.h"

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/limit_size.h"
#include "client/ctl/program_folder.h"
#include "common/base/bytes.h"
#include "common/base/errno_status.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/base/weight.h"

namespace mets::ctl {
namespace {

constexpr char kPluginName[] = "libmets_tensorflow.so";
constexpr char kPluginVariable[] = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";
constexpr char kPythonVariable[] = "PYTHONPATH";

// `amount`: what `value` says.
absl::Status AddAmount(const char* option, const char* variable,
                       const std::string& value,
                       const absl::StatusOr<Bytes>& amount,
                       Environment* environment) {
  if (value.empty()) return absl::OkStatus();
  if (!amount.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", amount.status().message()));
  }
  environment->emplace_back(variable, value);
  return absl::OkStatus();
}

absl::Status AddWait(const std::string& value, Environment* environment) {
  if (value.empty()) return absl::OkStatus();
  absl::Duration wait;
  const bool duration =
      absl::ParseDuration(value, &wait) && wait >= absl::ZeroDuration();
  if (!duration && value != "forever" && value != "fail") {
    return absl::InvalidArgumentError(
        absl::StrCat("--wait: '", value,
                     "' is not possible; accepted is a duration such as "
                     "'60s', 'forever' or 'fail'"));
  }
  environment->emplace_back("METS_WAIT", value);
  return absl::OkStatus();
}

absl::Status CheckGuarantee(const RunOptions& options) {
  if (options.limit.empty() || options.guarantee.empty()) {
    return absl::OkStatus();
  }
  METS_ASSIGN_OR_RETURN(const Bytes limit, ParseBytes(options.limit));
  METS_ASSIGN_OR_RETURN(const Bytes guarantee, ParseBytes(options.guarantee));
  if (guarantee <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--guarantee ", FormatBytes(guarantee), " is above --limit ",
                   FormatBytes(limit)));
}

// TensorFlow loads one plug-in from there, and METS works with none beside it.
absl::Status CheckNoOtherPlugin() {
  const char* named = std::getenv(kPluginVariable);
  if (named == nullptr || *named == '\0' ||
      absl::EndsWith(absl::StrCat("/", named),
                     absl::StrCat("/", kPluginName))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(kPluginVariable, " names another TensorFlow plug-in, ",
                   named, ", and METS works with none beside it: unset it"));
}

}  // namespace

absl::StatusOr<Environment> MakeEnvironment(const RunOptions& options,
                                            const std::string& run_dir,
                                            const Installation& installation,
                                            const std::string& python_path) {
  Environment environment;
  environment.emplace_back("METS_RUN_DIR", run_dir);
  if (!options.job.empty()) {
    METS_RETURN_IF_ERROR(ValidateJobName(options.job));
    environment.emplace_back("METS_JOB", options.job);
  }
  METS_RETURN_IF_ERROR(AddAmount("--limit", "METS_LIMIT", options.limit,
                                 ParseLimit(options.limit), &environment));
  METS_RETURN_IF_ERROR(AddAmount(
      "--guarantee", "METS_GUARANTEE", options.guarantee,
      ParseBytes(options.guarantee), &environment));
  METS_RETURN_IF_ERROR(CheckGuarantee(options));
  if (options.priority.has_value()) {
    if (!IsPriority(*options.priority)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--priority: ", *options.priority, " is not between -",
                       kMostPriority, " and ", kMostPriority));
    }
    environment.emplace_back("METS_PRIORITY", absl::StrCat(*options.priority));
  }
  if (options.weight.has_value()) {
    if (!IsWeight(*options.weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--weight: ", *options.weight, " is not between 1 and ",
                       kMostWeight));
    }
    environment.emplace_back("METS_WEIGHT", absl::StrCat(*options.weight));
  }
  METS_RETURN_IF_ERROR(AddWait(options.wait, &environment));
  if (!installation.plugin.empty()) {
    environment.emplace_back(kPluginVariable, installation.plugin);
  }
  if (!installation.python.empty()) {
    environment.emplace_back(
        kPythonVariable,
        absl::StrCat(installation.python, python_path.empty() ? "" : ":",
                     python_path));
  }
  if (!installation.lib.empty()) {
    environment.emplace_back("METS_LIBRARY_DIR", installation.lib);
  }
  return environment;
}

Installation FindInstallation() {
  const std::string folder = ProgramFolder();
  if (folder.empty()) return {};
  const std::string prefix = folder.substr(0, folder.rfind('/'));
  const auto readable = [&](absl::string_view name) {
    return access(absl::StrCat(prefix, name).c_str(), R_OK) == 0;
  };
  // Installed, libraries have a folder of their own; in a build or a bundle
  // not.
  const bool installed = readable("/lib/mets/libmets.so");
  const std::string lib = installed ? "/lib/mets" : "/lib";
  const std::string python = installed ? "/lib/mets/python" : "/python";
  const std::string plugin = absl::StrCat(lib, "/", kPluginName);
  Installation found;
  if (readable(plugin)) found.plugin = prefix + plugin;
  if (readable(python + "/mets/torch.py")) found.python = prefix + python;
  if (readable(lib + "/libmets.so")) found.lib = prefix + lib;
  return found;
}

absl::Status RunCommand(const RunOptions& options, const std::string& run_dir) {
  const Installation installation = FindInstallation();
  const char* python_path = std::getenv(kPythonVariable);
  METS_ASSIGN_OR_RETURN(
      const Environment environment,
      MakeEnvironment(options, run_dir, installation,
                      python_path == nullptr ? "" : python_path));
  METS_RETURN_IF_ERROR(CheckNoOtherPlugin());
  METS_RETURN_IF_ERROR(CheckSocket(run_dir, "fd.sock"));
  if (installation.plugin.empty()) {
    std::fprintf(stderr,
                 "metsctl: %s is not installed beside metsctl: TensorFlow "
                 "programs will run without METS\n",
                 kPluginName);
  }
  for (const auto& [name, value] : environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> argv;
  for (const std::string& part : options.command) {
    argv.push_back(const_cast<char*>(part.c_str()));
  }
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return ErrnoToStatus(errno, absl::StrCat("cannot run ", options.command[0]));
}

}  // namespace mets::ctl
