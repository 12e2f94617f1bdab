#include "daemon/core/scheduling/turn_party.h"

#include <algorithm>
#include <functional>
#include <set>

namespace mets::core {
namespace {

// Longer than most steps take, also in turns.
constexpr absl::Duration kLately = absl::Seconds(5);

template <typename Value>
Bytes Sum(const TurnPart& part, Value value) {
  Bytes sum;
  for (const auto& [id, member] : part.members) sum += value(member);
  return sum;
}

}  // namespace

void TurnMember::NoteLive(absl::Time now) {
  if (now >= window + kLately) {
    most_live_before = now < window + 2 * kLately ? most_live : live();
    most_live = Bytes();
    window = now;
  }
  most_live = std::max(most_live, live());
}

bool TurnPart::used() const {
  return has_turn || std::any_of(members.begin(), members.end(), [](auto& m) {
           const TurnMember& member = m.second;
           return member.known || member.wants || member.facts.gated ||
                  member.facts.asked || member.live() > Bytes();
         });
}

bool TurnPart::known() const {
  bool any = false;
  for (const auto& [id, member] : members) {
    any |= member.known;
    if (!member.known && member.live() > Bytes()) return false;
  }
  return any;
}

bool TurnPart::gated() const {
  return std::any_of(members.begin(), members.end(),
                     [](const auto& m) { return m.second.facts.gated; });
}

Bytes TurnPart::live() const {
  return Sum(*this, std::mem_fn(&TurnMember::live));
}

Bytes TurnPart::resident() const {
  return Sum(*this, [](const TurnMember& m) { return m.facts.resident; });
}

Bytes TurnPart::swapped() const {
  return Sum(*this, [](const TurnMember& m) { return m.facts.swapped; });
}

Bytes TurnPart::moved() const {
  return Sum(*this, [](const TurnMember& m) { return m.facts.moved; });
}

absl::Duration TurnPart::waited() const {
  absl::Duration most;
  for (const auto& [id, member] : members) {
    most = std::max(most, member.facts.waited);
  }
  return most;
}

Bytes TurnPart::peak() const {
  return Limited(Sum(*this, [](const TurnMember& m) {
    return m.known ? m.peak : m.lately();
  }));
}

Bytes TurnPart::persistent() const {
  return Limited(Sum(*this, [](const TurnMember& m) {
    return m.known ? m.persistent : m.live();
  }));
}

absl::Duration TurnPart::step() const {
  absl::Duration longest;
  if (!known()) return longest;
  for (const auto& [id, member] : members) {
    if (member.known) longest = std::max(longest, member.step);
  }
  return longest;
}

const TurnPart* TurnParty::On(size_t device) const {
  const auto it = parts.find(device);
  return it == parts.end() || !it->second.used() ? nullptr : &it->second;
}

bool TurnParty::gated() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const auto& p) { return p.second.gated(); });
}

absl::Duration TurnParty::step() const {
  absl::Duration longest;
  for (const auto& [device, part] : parts) {
    longest = std::max(longest, part.step());
  }
  return longest;
}

size_t TurnParty::gates() const {
  size_t gates = 0;
  for (const auto& [device, part] : parts) {
    if (part.used()) gates += part.members.size();
  }
  return gates;
}

size_t TurnParty::processes() const {
  std::set<SessionId> sessions;
  for (const auto& [device, part] : parts) {
    for (const auto& [id, member] : part.members) sessions.insert(id);
  }
  return sessions.size();
}

}  // namespace mets::core
