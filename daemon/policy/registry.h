// The policies, by name.
#ifndef METS_DAEMON_POLICY_REGISTRY_H_
#define METS_DAEMON_POLICY_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::policy {

// The policy called `name`; INVALID_ARGUMENT, naming the known ones, when
// there is none. A new policy is one more line of the table in registry.cc.
absl::StatusOr<std::unique_ptr<core::VictimPolicy>> MakePolicy(
    absl::string_view name);

// BeladyPolicy, which needs to know the future: for the simulator. The daemon
// does not offer it.
std::unique_ptr<core::VictimPolicy> MakeReferencePolicy();

// Names for MakePolicy; the default first.
std::vector<std::string> PolicyNames();

}  // namespace mets::policy

#endif  // METS_DAEMON_POLICY_REGISTRY_H_
