#include "daemon/policy/lru_policy.h"

namespace mets::policy {

std::string LruPolicy::name() const { return "lru"; }

double LruPolicy::Key(const core::VictimFacts& facts) const {
  return -absl::ToDoubleSeconds(facts.last_use - absl::UnixEpoch());
}

double LruPolicy::Score(absl::Time now, const core::VictimFacts& facts) const {
  return absl::ToDoubleSeconds(now - facts.last_use);
}

}  // namespace mets::policy
