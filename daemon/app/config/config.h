// Config: how metsd is set up.
#ifndef METS_DAEMON_APP_CONFIG_CONFIG_H_
#define METS_DAEMON_APP_CONFIG_CONFIG_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "daemon/core/values.h"

namespace mets::app {

struct DeviceSpec {
  std::string kind;  // "host" or "cuda"
  Bytes size;        // Of a GPU, zero: what is free (cuda_specs.h).
  // Of a GPU: its number, its UUID, or "all".
  std::string id = "";
};

// A [[domain]] table: the caps of one user's jobs.
struct DomainSpec {
  uid_t uid = 0;
  core::Caps caps;
};

// A [[listener]] table: a directory with sockets of its own.
struct ListenerSpec {
  std::string dir;
  std::string job;     // Empty: what the client says.
  std::string domain;  // Empty: the directory's own.
  core::Caps caps;
};

// Every field is one key of the configuration file and, but for the tables, one
// flag.
struct Config {
  std::string run_dir;              // run-dir; empty: the default.
  std::vector<DeviceSpec> devices;  // device; empty: one host device.
  std::optional<Bytes> swap_space;  // swap-space
  std::string policy = "lru";       // policy
  std::string metrics_address;      // metrics-address; empty: none.
  // status-address; empty: none.
  std::string status_address = "127.0.0.1:6387";
  std::string socket_group;        // socket-group; empty: the default.
  std::string admin_group;         // admin-group; empty: root alone.
  std::string log_level = "info";  // log-level
  absl::Duration order_timeout = absl::Seconds(5);   // order-timeout
  absl::Duration recovery_grace = absl::Seconds(5);  // recovery-grace
  absl::Duration idle_release = absl::Minutes(1);    // idle-release
  bool plans = true;                                 // plans
  double moving_share = 0.02;                        // moving-share
  absl::Duration max_wait = absl::Seconds(30);       // max-wait
  double interference_bound = 0.02;                  // interference-bound
  core::Caps caps;                      // max-priority, -guarantee, -limit
  std::vector<DomainSpec> domains;      // [[domain]]
  std::vector<ListenerSpec> listeners;  // [[listener]]
  // What was given for each key, as text; a flag's values replace the file's.
  std::map<std::string, std::vector<std::string>> given;
};

// One key: its name, the form of its values, and how it is set.
struct ConfigKey {
  const char* name;
  const char* form;  // e.g. "SIZE"
  const char* help;
  bool repeatable;
  bool live;  // A reload changes it; other keys need a restart.
  // INVALID_ARGUMENT, saying what is accepted, when `value` is not. A
  // repeatable key adds to what is there.
  absl::Status (*set)(absl::string_view value, Config* config);
};

// All keys, in the order of the help text.
const std::vector<ConfigKey>& ConfigKeys();

// One key of a table, as above.
template <typename Table>
struct TableKey {
  const char* name;
  absl::Status (*set)(absl::string_view value, Table* table);
};
const std::vector<TableKey<DomainSpec>>& DomainKeys();
const std::vector<TableKey<ListenerSpec>>& ListenerKeys();

// What a reload to `next` would need a restart for: names of keys.
std::vector<std::string> KeysThatNeedARestart(const Config& now,
                                              const Config& next);

// Reads the TOML text of `file` into `config`, over what is there. Errors name
// the file, line and key, and what is accepted.
absl::Status ReadConfigText(const std::string& file, const std::string& text,
                            Config* config);
absl::Status ReadConfigFile(const std::string& file, Config* config);

// The directory for an empty run-dir: /run/mets, or $XDG_RUNTIME_DIR/mets for
// an ordinary user who has one.
std::string DefaultRunDir();

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_CONFIG_H_
