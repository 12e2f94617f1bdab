#include "daemon/policy/lru_policy.h"

#include "daemon/policy/expected_use.h"

namespace mets::policy {

std::string LruPolicy::name() const { return "lru"; }

double LruPolicy::Key(const core::VictimFacts& facts) const {
  return RecencyKey(facts);
}

double LruPolicy::Score(absl::Time now, const core::VictimFacts& facts) const {
  return absl::ToDoubleSeconds(now - facts.last_use);
}

}  // namespace mets::policy
