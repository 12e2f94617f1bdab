#include "daemon/policy/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/policy/absence_policies.h"
#include "daemon/policy/belady_policy.h"
#include "daemon/policy/largest_first_policy.h"
#include "daemon/policy/lru_policy.h"
#include "daemon/policy/next_use_policy.h"

namespace mets::policy {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<core::VictimPolicy> (*make)();
};

template <typename Policy>
std::unique_ptr<core::VictimPolicy> Make() {
  return std::make_unique<Policy>();
}

constexpr Entry kPolicies[] = {
    {"lru", &Make<LruPolicy>},
    {"largest_first", &Make<LargestFirstPolicy>},
    {"next_use", &Make<NextUsePolicy>},
    {"absence", &Make<AbsencePolicy>},
    {"absence_area", &Make<AbsenceAreaPolicy>},
    {"weighted_absence_area", &Make<WeightedAbsenceAreaPolicy>},
    {"absence_vote", &Make<AbsenceVotePolicy>},
};

}  // namespace

absl::StatusOr<std::unique_ptr<core::VictimPolicy>> MakePolicy(
    absl::string_view name) {
  for (const Entry& entry : kPolicies) {
    if (name == entry.name) return entry.make();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no policy '", name,
                   "'; there are: ", absl::StrJoin(PolicyNames(), ", ")));
}

std::unique_ptr<core::VictimPolicy> MakeReferencePolicy() {
  return std::make_unique<BeladyPolicy>();
}

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

}  // namespace mets::policy
