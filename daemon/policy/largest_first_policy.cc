#include "daemon/policy/largest_first_policy.h"

namespace mets::policy {

std::string LargestFirstPolicy::name() const { return "largest_first"; }

double LargestFirstPolicy::Key(const core::VictimFacts& facts) const {
  return static_cast<double>(facts.size.count());
}

double LargestFirstPolicy::Score(absl::Time /*now*/,
                                 const core::VictimFacts& facts) const {
  return Key(facts);
}

}  // namespace mets::policy
