#include "daemon/app/config/check_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "daemon/app/config/machine_memory.h"
#include "daemon/app/config/session_rules.h"
#include "daemon/policy/registry.h"
#include "daemon/transport/sockets/socket_files.h"

namespace mets::app {
namespace {

absl::Status CheckGroup(const char* key, const std::string& group) {
  if (group.empty()) return absl::OkStatus();
  const absl::StatusOr<gid_t> found = transport::FindGroup(group);
  if (found.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": ", found.status().message()));
}

}  // namespace

absl::StatusOr<std::string> CheckConfig(const Config& config) {
  METS_RETURN_IF_ERROR(policy::MakePolicy(config.policy).status());
  METS_RETURN_IF_ERROR(CheckGroup("socket-group", config.socket_group));
  METS_RETURN_IF_ERROR(CheckGroup("admin-group", config.admin_group));
  METS_RETURN_IF_ERROR(transport::CheckRunDir(config.run_dir));
  METS_RETURN_IF_ERROR(CheckListeners(config));
  METS_ASSIGN_OR_RETURN(const Bytes memory, TotalMemory(MemoryFiles()));
  Config fitted = config;
  METS_RETURN_IF_ERROR(FitToMachine(memory, "in all", &fitted));
  std::string text = "the configuration is good\n";
  for (const auto& [key, values] : config.given) {
    absl::StrAppend(&text, "  ", key, ": ", absl::StrJoin(values, "; "), "\n");
  }
  return text;
}

}  // namespace mets::app
