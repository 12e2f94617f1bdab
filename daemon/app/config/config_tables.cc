// The keys of the tables of the configuration file, and what they share with
// others.
#include <pwd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "daemon/app/config/config.h"
#include "daemon/app/config/config_values.h"

namespace mets::app {

absl::Status BadValue(absl::string_view value, absl::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is not possible; ", accepted));
}

absl::Status SetMaxPriority(absl::string_view value, core::Caps* caps) {
  int parsed = 0;
  if (!absl::SimpleAtoi(value, &parsed)) {
    return BadValue(value, "a whole number is needed");
  }
  caps->max_priority = parsed;
  return absl::OkStatus();
}

absl::Status SetMaxGuarantee(absl::string_view value, core::Caps* caps) {
  METS_ASSIGN_OR_RETURN(caps->max_guarantee, ParseBytes(value));
  return absl::OkStatus();
}

absl::Status SetMaxLimit(absl::string_view value, core::Caps* caps) {
  METS_ASSIGN_OR_RETURN(const Bytes limit, ParseBytes(value));
  if (limit.is_zero()) return BadValue(value, "a limit above 0 is needed");
  caps->max_limit = limit;
  return absl::OkStatus();
}

namespace {

absl::Status SetUser(absl::string_view value, DomainSpec* domain) {
  uint32_t uid = 0;
  if (absl::SimpleAtoi(value, &uid)) {
    domain->uid = uid;
    return absl::OkStatus();
  }
  std::vector<char> buffer(16 << 10);
  passwd entry;
  passwd* found = nullptr;
  getpwnam_r(std::string(value).c_str(), &entry, buffer.data(), buffer.size(),
             &found);
  if (found == nullptr) {
    return BadValue(value,
                    "the name or number of a user of this machine is needed");
  }
  domain->uid = entry.pw_uid;
  return absl::OkStatus();
}

absl::Status SetListenerDir(absl::string_view value, ListenerSpec* listener) {
  if (value.empty() || value.front() != '/') {
    return BadValue(value, "the absolute path of a directory is needed");
  }
  while (value.size() > 1 && value.back() == '/') value.remove_suffix(1);
  listener->dir = std::string(value);
  return absl::OkStatus();
}

absl::Status SetName(absl::string_view value, std::string* name) {
  METS_RETURN_IF_ERROR(ValidateJobName(std::string(value)));
  *name = std::string(value);
  return absl::OkStatus();
}

template <typename Table>
std::vector<TableKey<Table>> WithCaps(std::vector<TableKey<Table>> keys) {
  keys.push_back({"max-priority", [](absl::string_view value, Table* table) {
                    return SetMaxPriority(value, &table->caps);
                  }});
  keys.push_back({"max-guarantee", [](absl::string_view value, Table* table) {
                    return SetMaxGuarantee(value, &table->caps);
                  }});
  keys.push_back({"max-limit", [](absl::string_view value, Table* table) {
                    return SetMaxLimit(value, &table->caps);
                  }});
  return keys;
}

}  // namespace

const std::vector<TableKey<DomainSpec>>& DomainKeys() {
  static const auto& keys = *new std::vector<TableKey<DomainSpec>>(
      WithCaps<DomainSpec>({{"user", SetUser}}));
  return keys;
}

const std::vector<TableKey<ListenerSpec>>& ListenerKeys() {
  static const auto& keys =
      *new std::vector<TableKey<ListenerSpec>>(WithCaps<ListenerSpec>(
          {{"dir", SetListenerDir},
           {"job",
            [](absl::string_view value, ListenerSpec* listener) {
              return SetName(value, &listener->job);
            }},
           {"domain", [](absl::string_view value, ListenerSpec* listener) {
              return SetName(value, &listener->domain);
            }}}));
  return keys;
}

}  // namespace mets::app
