#include "daemon/core/victims/victim_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets::core {
namespace {

int SizeClass(Bytes size) {
  int size_class = 0;
  while (size.count() >> (size_class + 1) > 0) ++size_class;
  return size_class;
}

absl::Time NextUse(absl::Time next_use, absl::Time not_before) {
  if (not_before == absl::InfinitePast()) return next_use;
  if (next_use == absl::InfiniteFuture()) return not_before;
  return std::max(next_use, not_before);
}

bool IsHeld(const Buffer& buffer) { return buffer.mobility == Mobility::kHeld; }

absl::Status Broken(const VictimOwner& owner, absl::string_view what) {
  return absl::InternalError(absl::StrCat(
      "victims of session ", owner.session->id.value(), ": ", what));
}

}  // namespace

VictimFacts VictimIndex::Facts(Bytes size, bool clean, absl::Time last_use,
                               absl::Time next_use) const {
  VictimFacts facts;
  facts.size = size;
  facts.last_use = last_use;
  facts.next_use = next_use;
  facts.clean = clean;
  facts.copy_time = absl::Nanoseconds(
      static_cast<int64_t>(nanoseconds_per_byte_ * (clean ? 1 : 2) *
                           static_cast<double>(size.count())));
  return facts;
}

VictimFacts VictimIndex::FactsOf(const Buffer& buffer) const {
  return Facts(buffer.size, buffer.slot.ok(), buffer.last_use, buffer.next_use);
}

VictimKind VictimIndex::KindOf(const VictimFacts& facts, bool held) const {
  return {SizeClass(facts.size), facts.clean,
          facts.next_use != absl::InfiniteFuture(), held};
}

double VictimIndex::Weigh(const VictimFacts& facts, int weight,
                          absl::Time now) const {
  const double score = policy_.Score(now, facts);
  return score > 0 ? score / weight : score * weight;
}

double VictimIndex::Score(const VictimGroup& group, const VictimEntry& entry,
                          absl::Time now) const {
  return Weigh(Facts(entry.size, group.kind.clean, entry.last_use,
                     NextUse(entry.next_use, group.owner->not_before)),
               group.owner->weight, now);
}

double VictimIndex::Score(const VictimHeadsKey& key, const VictimHead& head,
                          absl::Time now) const {
  return Weigh(Facts(head.size, key.kind.clean, head.last_use, head.next_use),
               key.weight, now);
}

VictimIndex::Member& VictimIndex::MemberOf(const Session& session) {
  auto [it, added] = members_.try_emplace(session.id);
  if (added) it->second.owner.session = &session;
  return it->second;
}

VictimIndex::Groups* VictimIndex::GroupsOf(SessionId session) {
  auto it = members_.find(session);
  if (it == members_.end() || !it->second.owner.takes_part) return nullptr;
  return &it->second.groups;
}

void VictimIndex::Update(const Session& session, Buffer& buffer,
                         absl::Time now) {
  if (frozen_) {
    changed_.emplace_back(&session, &buffer);
    return;
  }
  const bool can_leave = buffer.CanLeaveAtGate();
  if (!can_leave || buffer.skip_until > now) {
    Take(session, buffer);
    if (!can_leave) return;
    buffer.place.rests_until = buffer.skip_until;
    resting_.insert(
        {buffer.skip_until, session.id, buffer.id, &buffer, &session});
    return;
  }
  const VictimFacts facts = FactsOf(buffer);
  const VictimKind kind = KindOf(facts, IsHeld(buffer));
  const VictimEntry entry{policy_.Key(facts), buffer.size,
                          buffer.id,          &buffer,
                          buffer.last_use,    buffer.next_use};
  if (buffer.place.group != nullptr && buffer.place.group->kind == kind &&
      buffer.place.entry->key == entry.key) {
    buffer.place.entry->last_use = entry.last_use;
    buffer.place.entry->next_use = entry.next_use;
    VictimGroup& group = *buffer.place.group;
    if (buffer.place.entry == group.entries.begin()) PlaceHead(group);
    return;
  }
  Take(session, buffer);
  Member& member = MemberOf(session);
  VictimGroup& group = member.groups[kind];
  group.owner = &member.owner;
  group.kind = kind;
  buffer.place.group = &group;
  buffer.place.entry = group.entries.insert(entry).first;
  if (buffer.place.entry == group.entries.begin()) PlaceHead(group);
}

void VictimIndex::Remove(const Session& session, Buffer& buffer) {
  METS_CHECK(!frozen_) << "buffer " << buffer.id << " leaves a frozen index";
  Take(session, buffer);
}

void VictimIndex::Take(const Session& session, Buffer& buffer) {
  VictimPlace& place = buffer.place;
  if (place.rests_until != absl::InfinitePast()) {
    resting_.erase(
        {place.rests_until, session.id, buffer.id, nullptr, nullptr});
  } else if (VictimGroup* group = place.group) {
    const bool first = place.entry == group->entries.begin();
    if (first) DropHead(*group);
    group->entries.erase(place.entry);
    if (group->entries.empty()) {
      const VictimKind kind = group->kind;
      members_.at(session.id).groups.erase(kind);
    } else if (first) {
      PlaceHead(*group);
    }
  }
  place = VictimPlace();
}

void VictimIndex::RemoveAll(SessionId session, BufferTable& buffers) {
  METS_CHECK(!frozen_) << "session " << session << " leaves a frozen index";
  for (auto& [id, buffer] : buffers.all()) {
    if (buffer.place.rests_until != absl::InfinitePast()) {
      resting_.erase({buffer.place.rests_until, session, id, nullptr, nullptr});
    }
    buffer.place = VictimPlace();
  }
  auto it = members_.find(session);
  if (it == members_.end()) return;
  for (auto& [kind, group] : it->second.groups) DropHead(group);
  members_.erase(it);
}

void VictimIndex::SetOwner(const VictimOwner& owner) {
  Member& member = MemberOf(*owner.session);
  VictimOwner same = owner;
  same.takes_part = member.owner.takes_part;
  const bool only_that = same == member.owner;
  const bool took_part = std::exchange(member.owner, owner).takes_part;
  if (only_that && (took_part || !owner.takes_part)) return;
  for (auto& [kind, group] : member.groups) {
    if (!only_that || !group.has_head) PlaceHead(group);
  }
}

void VictimIndex::Wake(absl::Time now) {
  while (!resting_.empty() && resting_.begin()->until <= now) {
    const Resting first = *resting_.begin();
    Update(*first.session_at, *first.buffer, now);
  }
}

void VictimIndex::Thaw(absl::Time now) {
  frozen_ = false;
  for (const auto& [session, buffer] : std::exchange(changed_, {})) {
    Update(*session, *buffer, now);
  }
}

VictimHeadsKey VictimIndex::WhereHead(const VictimGroup& group,
                                      VictimHead* head) const {
  const VictimEntry& first = *group.entries.begin();
  const VictimOwner& owner = *group.owner;
  const VictimFacts facts = Facts(first.size, group.kind.clean, first.last_use,
                                  NextUse(first.next_use, owner.not_before));
  head->key = policy_.Key(facts);
  head->size = first.size;
  head->session = owner.session->id;
  head->buffer = first.id;
  head->at = first.buffer;
  head->owner = &owner;
  head->last_use = facts.last_use;
  head->next_use = facts.next_use;
  return {KindOf(facts, group.kind.held), owner.priority, owner.weight,
          owner.waits()};
}

void VictimIndex::PlaceHead(VictimGroup& group) {
  DropHead(group);
  if (!group.owner->offers(group.kind) || group.entries.empty()) return;
  VictimHead head;
  const VictimHeadsKey key = WhereHead(group, &head);
  head.group = &group;
  const auto [it, added] = heads_.try_emplace(key);
  VictimHeadSet& set = it->second;
  group.heads = it;
  group.head = head;
  group.has_head = true;
  const auto behind =
      std::upper_bound(set.heads.begin(), set.heads.end(), head);
  const bool first = behind == set.heads.end();
  set.heads.insert(behind, head);
  if (added) {
    set.best = best_.size();
    best_.push_back({key, &set, head});
  } else if (first) {
    best_[set.best].head = head;
  }
}

void VictimIndex::DropHead(VictimGroup& group) {
  if (!group.has_head) return;
  group.has_head = false;
  VictimHeadSet& set = group.heads->second;
  const auto head = Find(group);
  const bool first = std::next(head) == set.heads.end();
  set.heads.erase(head);
  if (set.heads.empty()) {
    best_[set.best] = best_.back();
    best_[set.best].set->best = set.best;
    best_.pop_back();
    heads_.erase(group.heads);
  } else if (first) {
    best_[set.best].head = set.heads.back();
  }
}

VictimHeads::iterator VictimIndex::Find(VictimGroup& group) {
  VictimHeads& heads = group.heads->second.heads;
  const auto at = std::lower_bound(heads.begin(), heads.end(), group.head);
  METS_CHECK(at != heads.end() && at->group == &group)
      << "a group's head is not where it should be";
  return at;
}

void VictimIndex::DropHeads(absl::Span<VictimGroup* const> groups) {
  for (VictimGroup* group : groups) DropHead(*group);
}

absl::Status VictimIndex::Check() const {
  size_t heads = 0;
  for (const auto& [id, member] : members_) {
    for (const auto& [kind, group] : member.groups) {
      if (group.entries.empty() || !(group.kind == kind) ||
          group.owner != &member.owner) {
        return Broken(member.owner, "a group is wrong");
      }
      if (!group.has_head) {
        if (!member.owner.offers(kind)) continue;
        return Broken(member.owner, "a group has no head");
      }
      ++heads;
      VictimHead head;
      auto it = heads_.find(WhereHead(group, &head));
      if (it == heads_.end() || it != group.heads) {
        return Broken(member.owner, "a head is in a wrong set");
      }
      const VictimHeads& heads = it->second.heads;
      const auto at = std::lower_bound(heads.begin(), heads.end(), head);
      if (at == heads.end() || at->group != &group || at->at != head.at ||
          at->last_use != head.last_use || at->next_use != head.next_use) {
        return Broken(member.owner, "a head is not where it should be");
      }
    }
  }
  for (const auto& [key, set] : heads_) {
    heads -= set.heads.size();
    if (set.heads.empty() || set.best >= best_.size() ||
        best_[set.best].set != &set ||
        best_[set.best].head.group != set.heads.back().group) {
      return absl::InternalError("the best of a set is not its first");
    }
  }
  if (heads != 0 || best_.size() != heads_.size()) {
    return absl::InternalError("there are heads of no group");
  }
  return absl::OkStatus();
}

absl::Status VictimIndex::CheckBuffer(const Session& session,
                                      const Buffer& buffer) const {
  const auto broken = [&](absl::string_view what) {
    return absl::InternalError(absl::StrCat("buffer ", buffer.id.value(),
                                            " of session ", session.id.value(),
                                            " ", what));
  };
  const VictimPlace& place = buffer.place;
  const bool rests = place.rests_until != absl::InfinitePast();
  if ((place.group != nullptr || rests) != buffer.CanLeaveAtGate()) {
    return broken("may leave and does not stand in the index, or should not");
  }
  if (rests) {
    const auto it = resting_.find(
        {place.rests_until, session.id, buffer.id, nullptr, nullptr});
    const bool there = it != resting_.end() && it->buffer == &buffer;
    return there && place.rests_until == buffer.skip_until
               ? absl::OkStatus()
               : broken("does not rest as it should");
  }
  if (place.group == nullptr) return absl::OkStatus();
  const VictimFacts facts = FactsOf(buffer);
  const bool right = place.group->owner->session == &session &&
                     place.group->kind == KindOf(facts, IsHeld(buffer)) &&
                     place.entry->buffer == &buffer &&
                     place.entry->key == policy_.Key(facts) &&
                     place.entry->last_use == buffer.last_use &&
                     place.entry->next_use == buffer.next_use;
  // The slot of one that an order names may have changed.
  return right || buffer.order.ok() ? absl::OkStatus()
                                    : broken("stands in a wrong place");
}

absl::Status VictimIndex::CheckOwner(const VictimOwner& owner) const {
  auto it = members_.find(owner.session->id);
  if (it == members_.end()) return absl::OkStatus();
  return it->second.owner == owner ? absl::OkStatus()
                                   : Broken(owner, "the session has changed");
}

}  // namespace mets::core
