#include "daemon/core/victim_index.h"

#include <algorithm>
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

absl::Status Broken(const VictimOwner& owner, absl::string_view what) {
  return absl::InternalError(absl::StrCat(
      "victims of session ", owner.session->id.value(), ": ", what));
}

}  // namespace

VictimFacts VictimIndex::Facts(const Buffer& buffer,
                               absl::Time not_before) const {
  VictimFacts facts;
  facts.size = buffer.size;
  facts.last_use = buffer.last_use;
  facts.next_use = buffer.next_use;
  if (not_before != absl::InfinitePast()) {
    const bool known = buffer.next_use != absl::InfiniteFuture();
    facts.next_use = known ? std::max(buffer.next_use, not_before) : not_before;
  }
  facts.clean = buffer.slot.ok();
  facts.copy_time =
      absl::Seconds(static_cast<double>(buffer.size.count()) *
                    (facts.clean ? 1 : 2) / bus_bytes_per_second_);
  return facts;
}

VictimKind VictimIndex::KindOf(const VictimFacts& facts) const {
  return {SizeClass(facts.size), facts.clean,
          facts.next_use != absl::InfiniteFuture()};
}

double VictimIndex::Score(const VictimOwner& owner, const Buffer& buffer,
                          absl::Time now) const {
  const double score = policy_.Score(now, Facts(buffer, owner.not_before));
  return score > 0 ? score / owner.weight : score * owner.weight;
}

VictimIndex::Member& VictimIndex::MemberOf(const Session& session) {
  auto [it, added] = members_.try_emplace(session.id);
  if (added) it->second.owner.session = &session;
  return it->second;
}

const VictimIndex::Groups* VictimIndex::GroupsOf(SessionId session) const {
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
  const bool can_leave = buffer.CanLeave();
  if (!can_leave || buffer.skip_until > now) {
    Take(session, buffer);
    if (!can_leave) return;
    buffer.place.rests_until = buffer.skip_until;
    resting_.insert(
        {buffer.skip_until, session.id, buffer.id, &buffer, &session});
    return;
  }
  const VictimFacts facts = Facts(buffer, absl::InfinitePast());
  const VictimKind kind = KindOf(facts);
  const VictimEntry entry{policy_.Key(facts), buffer.size, buffer.id, &buffer};
  if (buffer.place.group != nullptr && buffer.place.group->kind == kind &&
      buffer.place.entry->key == entry.key) {
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
  if (member.owner == owner) return;
  member.owner = owner;
  for (auto& [kind, group] : member.groups) PlaceHead(group);
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
  const VictimFacts facts = Facts(*first.buffer, group.owner->not_before);
  *head = {policy_.Key(facts), first.size, group.owner->session->id, first.id,
           &group};
  // Not facts.clean: during a round it may differ from the group's.
  return {{group.kind.size_class, group.kind.clean, KindOf(facts).known},
          group.owner->priority, group.owner->weight};
}

void VictimIndex::PlaceHead(VictimGroup& group) {
  DropHead(group);
  if (!group.owner->takes_part || group.entries.empty()) return;
  VictimHead head;
  group.heads = heads_.try_emplace(WhereHead(group, &head)).first;
  group.head = group.heads->second.insert(head).first;
  group.has_head = true;
}

void VictimIndex::DropHead(VictimGroup& group) {
  if (!group.has_head) return;
  group.heads->second.erase(group.head);
  if (group.heads->second.empty()) heads_.erase(group.heads);
  group.has_head = false;
}

absl::Status VictimIndex::Check() const {
  size_t heads = 0;
  for (const auto& [id, member] : members_) {
    for (const auto& [kind, group] : member.groups) {
      if (group.entries.empty() || !(group.kind == kind) ||
          group.owner != &member.owner) {
        return Broken(member.owner, "a group is wrong");
      }
      if (member.owner.takes_part != group.has_head) {
        return Broken(member.owner, "a group's head is there, or not");
      }
      if (!group.has_head) continue;
      ++heads;
      VictimHead head;
      auto it = heads_.find(WhereHead(group, &head));
      if (it == heads_.end() || it != group.heads ||
          it->second.count(head) == 0 || group.head->group != &group) {
        return Broken(member.owner, "a head is not where it should be");
      }
    }
  }
  for (const auto& [key, set] : heads_) {
    heads -= set.size();
    if (set.empty()) return absl::InternalError("there is an empty set");
  }
  if (heads != 0) return absl::InternalError("there are heads of no group");
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
  if ((place.group != nullptr || rests) != buffer.CanLeave()) {
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
  const VictimFacts facts = Facts(buffer, absl::InfinitePast());
  const bool right = place.group->owner->session == &session &&
                     place.group->kind == KindOf(facts) &&
                     place.entry->buffer == &buffer &&
                     place.entry->key == policy_.Key(facts);
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
