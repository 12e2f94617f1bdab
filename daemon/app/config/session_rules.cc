#include "daemon/app/config/session_rules.h"

#include <sys/stat.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/transport/sockets/socket_files.h"

namespace mets::app {
namespace {

// Far from the numbers of uids; the same in every run, because the state file
// records it (FNV-1a).
DomainId NamedDomain(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return DomainId((uint64_t{1} << 62) | (hash >> 2));
}

}  // namespace

transport::CapRules MakeCapRules(const Config& config) {
  transport::CapRules rules;
  rules.all = config.caps;
  for (const DomainSpec& domain : config.domains) {
    rules.by_uid[domain.uid] = domain.caps;
  }
  return rules;
}

std::vector<transport::ListenerRule> MakeListenerRules(const Config& config) {
  std::vector<transport::ListenerRule> rules(1);
  for (const ListenerSpec& listener : config.listeners) {
    const std::string& name =
        listener.domain.empty() ? listener.dir : listener.domain;
    rules.push_back({listener.job, NamedDomain(name), listener.caps});
  }
  return rules;
}

absl::Status CheckListeners(const Config& config) {
  std::set<std::string> seen = {config.run_dir};
  for (const ListenerSpec& listener : config.listeners) {
    struct stat info;
    if (stat(listener.dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return absl::NotFoundError(absl::StrCat(
          "listener: ", listener.dir, " is no directory that metsd can see; ",
          "make it (who can reach it may run jobs)"));
    }
    METS_RETURN_IF_ERROR(transport::CheckPathLength(listener.dir));
    if (!seen.insert(listener.dir).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "listener: ", listener.dir, " has sockets already; give each ",
          "listener a directory of its own"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mets::app
