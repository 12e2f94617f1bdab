#include "daemon/policy/next_use_policy.h"

#include <algorithm>

#include "daemon/policy/expected_use.h"

namespace mets::policy {

std::string NextUsePolicy::name() const { return "next_use"; }

// Within a size class, size per cost is the same for all.
double NextUsePolicy::Key(const core::VictimFacts& facts) const {
  if (!IsKnown(facts)) return RecencyKey(facts);
  return absl::ToDoubleSeconds(facts.next_use - absl::UnixEpoch());
}

double NextUsePolicy::Score(absl::Time now,
                            const core::VictimFacts& facts) const {
  const absl::Duration cost = std::max(facts.copy_time, absl::Nanoseconds(1));
  return static_cast<double>(facts.size.count()) *
         absl::ToDoubleSeconds(ExpectedUse(now, facts) - now) /
         absl::ToDoubleSeconds(cost);
}

}  // namespace mets::policy
