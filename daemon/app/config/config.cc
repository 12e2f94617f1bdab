#include "daemon/app/config/config.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "daemon/app/config/config_values.h"

namespace mets::app {
namespace {

constexpr Bytes kSmallestDevice = MiB(1);
constexpr Bytes kSmallestGpu = MiB(128);

absl::Status SetText(absl::string_view value, std::string* text) {
  if (value.empty())
    return BadValue(value, "a text that is not empty is needed");
  *text = std::string(value);
  return absl::OkStatus();
}

absl::Status SetRunDir(absl::string_view value, Config* config) {
  if (value.empty())
    return BadValue(value, "the path of a directory is needed");
  while (value.size() > 1 && value.back() == '/') value.remove_suffix(1);
  config->run_dir = std::string(value);
  return absl::OkStatus();
}

absl::Status SetDevice(absl::string_view value, Config* config) {
  constexpr absl::string_view kAccepted =
      "accepted are host:SIZE, such as 'host:2GiB', and cuda:GPU or "
      "cuda:GPU:SIZE, GPU being a number, a UUID or 'all', such as 'cuda:0'";
  const std::vector<std::string> parts = absl::StrSplit(value, ':');
  const bool cuda = parts[0] == "cuda";
  const size_t named = cuda ? 2 : 1;  // Parts before the size.
  if ((!cuda && parts[0] != "host") || parts.size() < 2 ||
      parts.size() > named + 1 || (cuda && parts[1].empty())) {
    return BadValue(value, kAccepted);
  }
  DeviceSpec spec = {parts[0], Bytes(), cuda ? parts[1] : ""};
  if (parts.size() > named) {
    const absl::StatusOr<Bytes> size = ParseBytes(parts[named]);
    if (!size.ok()) {
      return BadValue(value,
                      absl::StrCat(kAccepted, "; ", size.status().message()));
    }
    if (*size < (cuda ? kSmallestGpu : kSmallestDevice)) {
      return BadValue(value, absl::StrCat("a device has at least ",
                                          FormatBytes(cuda ? kSmallestGpu
                                                           : kSmallestDevice)));
    }
    spec.size = *size;
  }
  config->devices.push_back(std::move(spec));
  return absl::OkStatus();
}

absl::Status SetSwapSpace(absl::string_view value, Config* config) {
  METS_ASSIGN_OR_RETURN(config->swap_space, ParseBytes(value));
  return absl::OkStatus();
}

absl::Status SetPolicy(absl::string_view value, Config* config) {
  return SetText(value, &config->policy);
}

absl::Status SetAddress(absl::string_view value, std::string* address) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(':', 1));
  int port = -1;
  if (parts.size() != 2 || parts[0].empty() ||
      !absl::SimpleAtoi(parts[1], &port) || port < 0 || port > 65535) {
    return BadValue(
        value,
        "accepted is HOST:PORT, such as '127.0.0.1:9464'; port 0 takes "
        "any that is free");
  }
  *address = std::string(value);
  return absl::OkStatus();
}

absl::Status SetMetricsAddress(absl::string_view value, Config* config) {
  return SetAddress(value, &config->metrics_address);
}

absl::Status SetStatusAddress(absl::string_view value, Config* config) {
  if (value != "off") return SetAddress(value, &config->status_address);
  config->status_address.clear();
  return absl::OkStatus();
}

absl::Status SetSocketGroup(absl::string_view value, Config* config) {
  return SetText(value, &config->socket_group);
}

absl::Status SetAdminGroup(absl::string_view value, Config* config) {
  return SetText(value, &config->admin_group);
}

absl::Status SetLogLevel(absl::string_view value, Config* config) {
  for (absl::string_view level : {"debug", "info", "warning", "error"}) {
    if (value == level) return SetText(value, &config->log_level);
  }
  return BadValue(value, "accepted are debug, info, warning and error");
}

absl::Status SetDuration(absl::string_view value, absl::Duration* duration) {
  absl::Duration parsed;
  if (!absl::ParseDuration(value, &parsed) || parsed <= absl::ZeroDuration() ||
      parsed > absl::Hours(24)) {
    return BadValue(value, "accepted is a duration such as '5s' or '500ms'");
  }
  *duration = parsed;
  return absl::OkStatus();
}

absl::Status SetOrderTimeout(absl::string_view value, Config* config) {
  return SetDuration(value, &config->order_timeout);
}

absl::Status SetRecoveryGrace(absl::string_view value, Config* config) {
  return SetDuration(value, &config->recovery_grace);
}

absl::Status SetIdleRelease(absl::string_view value, Config* config) {
  if (value == "never") {
    config->idle_release = absl::InfiniteDuration();
    return absl::OkStatus();
  }
  if (SetDuration(value, &config->idle_release).ok()) return absl::OkStatus();
  return BadValue(value, "accepted are 'never' and durations such as '1m'");
}

absl::Status SetPlans(absl::string_view value, Config* config) {
  if (value != "on" && value != "off") {
    return BadValue(value, "accepted are 'on' and 'off'");
  }
  config->plans = value == "on";
  return absl::OkStatus();
}

absl::Status SetPart(absl::string_view value, double* part) {
  double parsed = 0;
  if (!absl::SimpleAtod(value, &parsed) || !(parsed > 0 && parsed <= 1)) {
    return BadValue(
        value,
        "accepted is a part of the time, above 0 and at most 1, such "
        "as 0.02");
  }
  *part = parsed;
  return absl::OkStatus();
}

absl::Status SetMovingShare(absl::string_view value, Config* config) {
  return SetPart(value, &config->moving_share);
}

absl::Status SetInterferenceBound(absl::string_view value, Config* config) {
  return SetPart(value, &config->interference_bound);
}

absl::Status SetMaxWait(absl::string_view value, Config* config) {
  return SetDuration(value, &config->max_wait);
}

}  // namespace

std::vector<std::string> KeysThatNeedARestart(const Config& now,
                                              const Config& next) {
  const auto of = [](const Config& config, const char* key) {
    const auto it = config.given.find(key);
    return it == config.given.end() ? std::vector<std::string>() : it->second;
  };
  std::vector<std::string> names;
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.live && of(now, key.name) != of(next, key.name)) {
      names.push_back(key.name);
    }
  }
  if (of(now, "listener") != of(next, "listener")) names.push_back("listener");
  return names;
}

const std::vector<ConfigKey>& ConfigKeys() {
  static const auto& keys = *new std::vector<ConfigKey>{
      {"run-dir", "DIR",
       "Directory of the sockets and the state file; made if its parent "
       "exists. Default: /run/mets, for an ordinary user "
       "$XDG_RUNTIME_DIR/mets",
       false, false, SetRunDir},
      {"device", "DEVICE",
       "A device to share: host:SIZE; a GPU cuda:NUMBER or cuda:UUID, all of "
       "which is free less 3 GiB, or with :SIZE behind it so much of it; or "
       "cuda:all. May be given several times. Default: one host device of a "
       "quarter of the free memory",
       true, false, SetDevice},
      {"swap-space", "SIZE",
       "The most host memory for buffers that are swapped out. Default: twice "
       "the devices, at most half of the memory that they leave free",
       false, false, SetSwapSpace},
      {"policy", "NAME", "Whose buffers leave first. Default: lru", false,
       false, SetPolicy},
      {"metrics-address", "HOST:PORT",
       "Serve Prometheus metrics there. Default: not served", false, false,
       SetMetricsAddress},
      {"status-address", "HOST:PORT|off",
       "Show devices, jobs and decisions to browsers there. Default: "
       "127.0.0.1:6387",
       false, false, SetStatusAddress},
      {"socket-group", "GROUP",
       "Group that may use the daemon. Default: for a metsd that runs as root, "
       "mets if there is such a group; else its user alone",
       false, false, SetSocketGroup},
      {"admin-group", "GROUP",
       "Group that may administer the daemon. Default: its user alone", false,
       false, SetAdminGroup},
      {"log-level", "LEVEL", "debug, info, warning or error. Default: info",
       false, true, SetLogLevel},
      {"order-timeout", "DURATION",
       "How long a job may take to give memory up before others are asked "
       "instead. Default: 5s",
       false, false, SetOrderTimeout},
      {"recovery-grace", "DURATION",
       "After a restart: how long jobs may take to come back before their "
       "memory is reserved as last recorded. Default: 5s",
       false, false, SetRecoveryGrace},
      {"idle-release", "DURATION|never",
       "Memory of a device, and swap space, that nobody has used for so long "
       "goes back to other programs. Default: 1m",
       false, false, SetIdleRelease},
      {"plans", "on|off",
       "Whether trainings whose step does not fit get a plan of what leaves "
       "and "
       "comes back where in the step. Default: on",
       false, false, SetPlans},
      {"moving-share", "PART",
       "Where jobs have the device in turn and bytes must move between: the "
       "part of the time that this may take. Default: 0.02",
       false, false, SetMovingShare},
      {"max-wait", "DURATION",
       "How long a job may wait for its turn while others compute. Default: "
       "30s",
       false, false, SetMaxWait},
      {"interference-bound", "PART",
       "The part of its time that a job may lose to copies for jobs of lower "
       "priority; those wait. 1: as much as they take. Default: 0.02",
       false, false, SetInterferenceBound},
      {"max-priority", "N",
       "No job gets a higher priority. Default: what it wishes for", false,
       true,
       [](absl::string_view value, Config* config) {
         return SetMaxPriority(value, &config->caps);
       }},
      {"max-guarantee", "SIZE",
       "No job gets a larger guarantee. Default: what it wishes for", false,
       true,
       [](absl::string_view value, Config* config) {
         return SetMaxGuarantee(value, &config->caps);
       }},
      {"max-limit", "SIZE",
       "No job may have more of a device. Default: what it wishes for", false,
       true,
       [](absl::string_view value, Config* config) {
         return SetMaxLimit(value, &config->caps);
       }},
  };
  return keys;
}

std::string DefaultRunDir() {
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (geteuid() != 0 && runtime_dir != nullptr && *runtime_dir != '\0') {
    return absl::StrCat(runtime_dir, "/mets");
  }
  return "/run/mets";
}

}  // namespace mets::app
