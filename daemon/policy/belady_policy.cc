#include "daemon/policy/belady_policy.h"

namespace mets::policy {

std::string BeladyPolicy::name() const { return "belady"; }

double BeladyPolicy::Key(const core::VictimFacts& facts) const {
  return absl::ToDoubleSeconds(facts.next_use - absl::UnixEpoch());
}

double BeladyPolicy::Score(absl::Time now,
                           const core::VictimFacts& facts) const {
  return absl::ToDoubleSeconds(facts.next_use - now);
}

}  // namespace mets::policy
