#include "daemon/core/scheduling/turn_party.h"

#include <algorithm>

namespace mets::core {
namespace {

Bytes LiveOf(const TurnMember& m) { return m.facts.resident + m.facts.swapped; }

template <typename Value>
Bytes Sum(const TurnParty& party, Value value) {
  Bytes sum;
  for (const auto& [id, member] : party.members) sum += value(member);
  return sum;
}

}  // namespace

bool TurnParty::known() const {
  bool any = false;
  for (const auto& [id, member] : members) {
    any |= member.known;
    if (!member.known && LiveOf(member) > Bytes()) return false;
  }
  return any;
}

bool TurnParty::gated() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.facts.gated; });
}

Bytes TurnParty::live() const { return Sum(*this, LiveOf); }

Bytes TurnParty::resident() const {
  return Sum(*this, [](const TurnMember& m) { return m.facts.resident; });
}

Bytes TurnParty::swapped() const {
  return Sum(*this, [](const TurnMember& m) { return m.facts.swapped; });
}

Bytes TurnParty::moved() const {
  return Sum(*this, [](const TurnMember& m) { return m.facts.moved; });
}

Bytes TurnParty::peak() const {
  return Limited(Sum(
      *this, [](const TurnMember& m) { return m.known ? m.peak : LiveOf(m); }));
}

Bytes TurnParty::persistent() const {
  return Limited(Sum(*this, [](const TurnMember& m) {
    return m.known ? m.persistent : LiveOf(m);
  }));
}

absl::Duration TurnParty::step() const {
  absl::Duration longest;
  if (!known()) return longest;
  for (const auto& [id, member] : members) {
    if (member.known) longest = std::max(longest, member.step);
  }
  return longest;
}

}  // namespace mets::core
