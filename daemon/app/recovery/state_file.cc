#include "daemon/app/recovery/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"

namespace mets::app {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("state file: ", what));
}

// A number of an object, without nlohmann's exceptions.
absl::StatusOr<uint64_t> Number(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) {
    return Bad(absl::StrCat("'", key, "' is no number"));
  }
  return it->get<uint64_t>();
}

absl::StatusOr<Bytes> Amount(const Json& object, const char* key) {
  METS_ASSIGN_OR_RETURN(const uint64_t count, Number(object, key));
  if (count > uint64_t{1} << 62) return Bad("absurd amount");
  return Bytes(static_cast<int64_t>(count));
}

Json ToJson(const RecordedSession& session) {
  Json held = Json::array();
  for (const auto& [device, bytes] : session.held) {
    held.push_back({{"device", device}, {"bytes", bytes.count()}});
  }
  return {{"session", session.session.value()},
          {"domain", session.domain.value()},
          {"job", session.job},
          {"uid", session.uid},
          {"pid", session.pid},
          {"start_time", session.start_time},
          {"held", held}};
}

absl::StatusOr<RecordedSession> SessionFrom(const Json& object) {
  if (!object.is_object()) return Bad("a session is no object");
  RecordedSession session;
  METS_ASSIGN_OR_RETURN(const uint64_t id, Number(object, "session"));
  METS_ASSIGN_OR_RETURN(const uint64_t domain, Number(object, "domain"));
  METS_ASSIGN_OR_RETURN(const uint64_t uid, Number(object, "uid"));
  METS_ASSIGN_OR_RETURN(const uint64_t pid, Number(object, "pid"));
  METS_ASSIGN_OR_RETURN(session.start_time, Number(object, "start_time"));
  session.session = SessionId(id);
  session.domain = DomainId(domain);
  session.uid = static_cast<uid_t>(uid);
  session.pid = static_cast<pid_t>(pid);
  const auto job = object.find("job");
  const auto held = object.find("held");
  if (job == object.end() || !job->is_string()) return Bad("no 'job'");
  if (held == object.end() || !held->is_array()) return Bad("no 'held'");
  session.job = job->get<std::string>();
  METS_RETURN_IF_ERROR(ValidateJobName(session.job));
  if (!session.session.ok() || !session.domain.ok()) return Bad("an id is 0");
  for (const Json& part : *held) {
    if (!part.is_object()) return Bad("'held' has no objects");
    METS_ASSIGN_OR_RETURN(const Bytes bytes, Amount(part, "bytes"));
    const auto device = part.find("device");
    if (device == part.end() || !device->is_string()) return Bad("no 'device'");
    session.held.emplace_back(device->get<std::string>(), bytes);
  }
  return session;
}

Json ToJson(const core::OperatorSettings& settings) {
  Json jobs = Json::array();
  for (const core::OperatorSettings::Job& job : settings.jobs) {
    Json object = {{"domain", job.domain.value()},
                   {"job", job.name},
                   {"paused", job.paused}};
    if (job.limit.has_value()) object["limit_bytes"] = job.limit->count();
    jobs.push_back(std::move(object));
  }
  return {{"drained", settings.drained}, {"jobs", jobs}};
}

absl::StatusOr<core::OperatorSettings::Job> JobSettingFrom(const Json& object) {
  if (!object.is_object()) return Bad("a job's setting is no object");
  core::OperatorSettings::Job job;
  METS_ASSIGN_OR_RETURN(const uint64_t domain, Number(object, "domain"));
  const auto name = object.find("job");
  const auto paused = object.find("paused");
  if (name == object.end() || !name->is_string()) return Bad("no 'job'");
  if (paused == object.end() || !paused->is_boolean()) {
    return Bad("no 'paused'");
  }
  job.domain = DomainId(domain);
  job.name = name->get<std::string>();
  job.paused = paused->get<bool>();
  if (object.contains("limit_bytes")) {
    METS_ASSIGN_OR_RETURN(job.limit, Amount(object, "limit_bytes"));
  }
  return job;
}

absl::Status WriteAll(const std::string& path, const std::string& text) {
  UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.ok()) return ErrnoToStatus(errno, absl::StrCat("create ", path));
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n =
        write(fd.get(), text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("write ", path));
    written += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<core::OperatorSettings> SettingsFrom(const Json& object) {
  core::OperatorSettings settings;
  const auto drained = object.find("drained");
  const auto jobs = object.find("jobs");
  if (drained == object.end() || !drained->is_array()) {
    return Bad("no 'drained'");
  }
  if (jobs == object.end() || !jobs->is_array()) return Bad("no 'jobs'");
  for (const Json& device : *drained) {
    if (!device.is_string()) return Bad("'drained' has no names");
    settings.drained.push_back(device.get<std::string>());
  }
  for (const Json& job : *jobs) {
    METS_ASSIGN_OR_RETURN(settings.jobs.emplace_back(), JobSettingFrom(job));
  }
  return settings;
}

}  // namespace

std::string FormatState(const SavedState& state) {
  Json sessions = Json::array();
  for (const RecordedSession& session : state.sessions) {
    sessions.push_back(ToJson(session));
  }
  const Json json = {{"version", kVersion},
                     {"epoch", state.epoch.value()},
                     {"swap_bytes", state.swap.count()},
                     {"sessions", sessions},
                     {"operator", ToJson(state.settings)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<SavedState> ParseState(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Bad("not a JSON object");
  METS_ASSIGN_OR_RETURN(const uint64_t version, Number(json, "version"));
  if (version != kVersion) {
    return Bad(
        absl::StrCat("version ", version, ", this metsd reads ", kVersion));
  }
  SavedState state;
  METS_ASSIGN_OR_RETURN(const uint64_t epoch, Number(json, "epoch"));
  state.epoch = Epoch(epoch);
  METS_ASSIGN_OR_RETURN(state.swap, Amount(json, "swap_bytes"));
  const auto sessions = json.find("sessions");
  if (sessions == json.end() || !sessions->is_array()) {
    return Bad("no 'sessions'");
  }
  for (const Json& object : *sessions) {
    METS_ASSIGN_OR_RETURN(RecordedSession session, SessionFrom(object));
    state.sessions.push_back(std::move(session));
  }
  // Daemons of earlier versions did not write it.
  const auto settings = json.find("operator");
  if (settings != json.end()) {
    METS_ASSIGN_OR_RETURN(state.settings, SettingsFrom(*settings));
  }
  return state;
}

absl::StatusOr<std::optional<SavedState>> LoadState(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    return ErrnoToStatus(errno, absl::StrCat("read ", path));
  }
  std::stringstream text;
  text << file.rdbuf();
  METS_ASSIGN_OR_RETURN(SavedState state, ParseState(text.str()));
  return state;
}

absl::Status StoreText(const std::string& path, const std::string& text) {
  const std::string draft = absl::StrCat(path, ".new");
  absl::Status status = WriteAll(draft, text);
  if (status.ok() && rename(draft.c_str(), path.c_str()) != 0) {
    status = ErrnoToStatus(errno, absl::StrCat("rename ", draft));
  }
  if (!status.ok()) unlink(draft.c_str());
  return status;
}

}  // namespace mets::app
