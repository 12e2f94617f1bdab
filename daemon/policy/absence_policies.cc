#include "daemon/policy/absence_policies.h"

#include <cmath>

#include "daemon/policy/expected_use.h"

namespace mets::policy {
namespace {

double Duration(absl::Time now, const core::VictimFacts& facts) {
  return absl::ToDoubleSeconds(ExpectedUse(now, facts) - facts.last_use -
                               facts.copy_time);
}

double Area(absl::Time now, const core::VictimFacts& facts) {
  return Duration(now, facts) * static_cast<double>(facts.size.count());
}

double WeightedArea(absl::Time now, const core::VictimFacts& facts) {
  return facts.excess_area > 0 ? facts.excess_area : Area(now, facts);
}

double Magnitude(double score) {
  return std::copysign(std::log1p(std::abs(score) * 1e6), score);
}

}  // namespace

double AbsencePolicyBase::Key(const core::VictimFacts& facts) const {
  return IsKnown(facts) ? Score(absl::UnixEpoch(), facts) : RecencyKey(facts);
}

std::string AbsencePolicy::name() const { return "absence"; }

double AbsencePolicy::Score(absl::Time now,
                            const core::VictimFacts& facts) const {
  return Duration(now, facts);
}

std::string AbsenceAreaPolicy::name() const { return "absence_area"; }

double AbsenceAreaPolicy::Score(absl::Time now,
                                const core::VictimFacts& facts) const {
  return Area(now, facts);
}

std::string WeightedAbsenceAreaPolicy::name() const {
  return "weighted_absence_area";
}

double WeightedAbsenceAreaPolicy::Score(absl::Time now,
                                        const core::VictimFacts& facts) const {
  return WeightedArea(now, facts);
}

std::string AbsenceVotePolicy::name() const { return "absence_vote"; }

double AbsenceVotePolicy::Score(absl::Time now,
                                const core::VictimFacts& facts) const {
  return Magnitude(Duration(now, facts)) + Magnitude(Area(now, facts)) +
         Magnitude(WeightedArea(now, facts));
}

}  // namespace mets::policy
