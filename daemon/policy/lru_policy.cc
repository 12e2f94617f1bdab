#include "daemon/policy/lru_policy.h"

#include <algorithm>
#include <tuple>

namespace mets::policy {

std::string LruPolicy::name() const { return "lru"; }

void LruPolicy::Rank(absl::Time /*now*/,
                     std::vector<core::VictimCandidate>* candidates) const {
  const auto key = [](const core::VictimCandidate& c) {
    return std::make_tuple(c.last_use, !c.clean, Bytes() - c.size, c.session,
                           c.buffer);
  };
  std::sort(candidates->begin(), candidates->end(),
            [&](const core::VictimCandidate& a,
                const core::VictimCandidate& b) { return key(a) < key(b); });
}

}  // namespace mets::policy
