// `metsctl report`: gathers files in a folder and packs it.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/doctor/doctor_command.h"
#include "client/ctl/doctor/output_of.h"
#include "client/ctl/program_folder.h"
#include "client/ctl/status_text.h"
#include "client/ctl/watch/events_command.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

// A new folder, gone with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "mets-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  // Empty: it could not be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::StrCat("cannot read ", path, "\n");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string OutputOrReason(std::vector<std::string> words) {
  const absl::StatusOr<std::string> text = OutputOf(std::move(words));
  return text.ok() ? *text : absl::StrCat(text.status().message(), "\n");
}

std::string StatusOrReason(const std::string& run_dir) {
  absl::StatusOr<AdminClient> client = AdminClient::Connect(run_dir);
  if (!client.ok()) return absl::StrCat(client.status().message(), "\n");
  const absl::StatusOr<v1::GetStatusResponse> status = client->GetStatus();
  if (!status.ok()) return absl::StrCat(status.status().message(), "\n");
  return ToJson(*status, {true, true, true, true});
}

std::string EventsOrReason(const std::string& run_dir) {
  absl::StatusOr<AdminClient> client = AdminClient::Connect(run_dir);
  if (!client.ok()) return absl::StrCat(client.status().message(), "\n");
  v1::WatchEventsRequest request;
  request.set_newest(std::numeric_limits<uint32_t>::max());
  const auto stream = client->WatchEvents(request);
  std::string text;
  for (v1::Event event; stream->Read(&event);) {
    text += EventLine(event, /*json=*/false);
  }
  const absl::Status status = stream->Finish();
  if (!status.ok()) absl::StrAppend(&text, status.message(), "\n");
  return text;
}

// Of a metsd that was installed with this metsctl, else of a package's.
std::string InstalledConfig() {
  const std::string beside = ProgramFolder() + "/../etc/mets/metsd.toml";
  return std::filesystem::exists(beside) ? beside : "/etc/mets/metsd.toml";
}

// METS_… alone: others may hold secrets.
std::string Variables() {
  std::string text;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (absl::StartsWith(*variable, "METS_")) {
      absl::StrAppend(&text, *variable, "\n");
    }
  }
  return text;
}

}  // namespace

absl::Status ReportCommand(const ReportOptions& options,
                           const std::string& run_dir) {
  const ScratchFolder scratch;
  const std::string name = absl::StrCat(
      "mets-report-",
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
  const std::string folder = scratch.path() + "/" + name;
  std::error_code error;
  if (scratch.path().empty() ||
      !std::filesystem::create_directory(folder, error)) {
    return absl::InternalError("cannot make a temporary folder");
  }
  const std::pair<const char*, std::string> files[] = {
      {"status.json", StatusOrReason(run_dir)},
      {"events.txt", EventsOrReason(run_dir)},
      {"doctor.txt", ToText(Examine(run_dir, options.python))},
      {"versions.txt", absl::StrCat("metsctl ", METS_VERSION, "\n",
                                    OutputOrReason({"uname", "-a"}))},
      {"metsd.toml", ReadFile(options.config.empty() ? InstalledConfig()
                                                     : options.config)},
      {"environment.txt", Variables()},
      {"meminfo.txt", ReadFile("/proc/meminfo")},
      {"metsd.log", OutputOrReason({"journalctl", "-u", "metsd", "-n", "2000",
                                    "--no-pager"})},
  };
  for (const auto& [file, text] : files) {
    std::ofstream(absl::StrCat(folder, "/", file)) << text;
  }
  const std::string out =
      options.out.empty() ? absl::StrCat(name, ".tar.gz") : options.out;
  METS_RETURN_IF_ERROR(
      OutputOf({"tar", "-C", scratch.path(), "-czf", out, name}).status());
  std::printf("%s\n", out.c_str());
  return absl::OkStatus();
}

}  // namespace mets::ctl
