#include "daemon/app/config/command_line.h"

#include <CLI/CLI.hpp>
#include <deque>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets::app {
namespace {

constexpr char kDescription[] =
    "metsd shares the memory of devices between jobs: it owns each device's "
    "memory and the host memory behind it, and decides whose buffers leave "
    "when the jobs together want more than there is.";
constexpr char kFooter[] =
    "SIZE is 192MiB, 12GiB or plain bytes. Every flag is also a key of the "
    "configuration file (TOML), e.g. device = [\"host:2GiB\"].\n"
    "SIGTERM and SIGINT stop the daemon; jobs go on with what they hold. "
    "SIGHUP "
    "reads the file again: log-level changes at once, caps for new jobs.\n"
    "The exit status is 0 when it was stopped, 2 when flags or file would not "
    "do (also with --check-config), and 1 for all else.";

// The values of one flag, as typed.
struct FlagValues {
  const ConfigKey* key;
  CLI::Option* option;
  std::vector<std::string> values;
};

absl::Status ApplyFlags(const std::deque<FlagValues>& flags, Config* config) {
  for (const FlagValues& flag : flags) {
    if (flag.option->count() == 0) continue;
    if (flag.key->repeatable) config->devices.clear();
    config->given[flag.key->name] = flag.values;
    for (const std::string& value : flag.values) {
      const absl::Status status = flag.key->set(value, config);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag.key->name, ": ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

// CLI11 reports by exceptions; they end here.
absl::StatusOr<std::string> Parse(CLI::App& app, int argc,
                                  const char* const* argv) {
  try {
    app.parse(argc, argv);
    return std::string();
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    if (app.exit(error, out, err) == 0) return out.str();
    return absl::InvalidArgumentError(
        absl::StrCat(error.what(), " (metsd --help lists the flags)"));
  }
}

}  // namespace

std::string VersionText() { return METS_VERSION; }

absl::StatusOr<CommandLine> ParseCommandLine(int argc,
                                             const char* const* argv) {
  CLI::App app(kDescription, "metsd");
  app.footer(kFooter);
  app.set_version_flag("--version", absl::StrCat("metsd ", VersionText()),
                       "Print the version");
  std::string config_file;
  app.add_option("--config", config_file, "Configuration file (TOML)")
      ->type_name("FILE");
  CommandLine result;
  app.add_flag("--check-config", result.check,
               "Say whether the flags and the file would do, and exit");
  std::deque<FlagValues> flags;
  for (const ConfigKey& key : ConfigKeys()) {
    FlagValues& flag = flags.emplace_back();
    flag.key = &key;
    flag.option =
        app.add_option(absl::StrCat("--", key.name), flag.values, key.help);
    flag.option->type_name(key.form);
    flag.option->expected(1);
    flag.option->multi_option_policy(key.repeatable
                                         ? CLI::MultiOptionPolicy::TakeAll
                                         : CLI::MultiOptionPolicy::Throw);
  }
  METS_ASSIGN_OR_RETURN(result.answer, Parse(app, argc, argv));
  if (!result.answer.empty()) return result;
  if (!config_file.empty()) {
    METS_RETURN_IF_ERROR(ReadConfigFile(config_file, &result.config));
  }
  METS_RETURN_IF_ERROR(ApplyFlags(flags, &result.config));
  if (result.config.run_dir.empty()) result.config.run_dir = DefaultRunDir();
  return result;
}

}  // namespace mets::app
