#include "daemon/core/victims/victim_walk.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mets::core {
namespace {

// How many of the best heads are fetched ahead.
constexpr size_t kFetched = 8;

// A decision is short, and most of what it touches lies in no cache: what it
// will probably touch is fetched ahead.
void Fetch(const void* at, size_t bytes) {
  const char* line = static_cast<const char*>(at);
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(line + i);
}

}  // namespace

bool VictimWalk::Source::operator<(const Source& other) const {
  if (rank != other.rank) return rank > other.rank;
  if (score != other.score) return score < other.score;
  if (clean != other.clean) return other.clean;
  if (size != other.size) return size < other.size;
  return std::tie(session, buffer) > std::tie(other.session, other.buffer);
}

VictimWalk::VictimWalk(VictimIndex& index, absl::Time now, int priority)
    : index_(index), now_(now), priority_(priority) {
  for (const VictimIndex::Best& best : index.best()) {
    sources_.push_back(SourceOf(best.key, best.head));
  }
  std::make_heap(sources_.begin(), sources_.end());
  for (size_t i = 0; i < std::min(sources_.size(), kFetched); ++i) {
    Fetch(sources_[i]);
  }
}

void VictimWalk::Fetch(const Source& source) {
  core::Fetch(source.group, sizeof(VictimGroup));
  core::Fetch(source.at, sizeof(Buffer));
  core::Fetch(source.owner, sizeof(VictimOwner));
}

void VictimWalk::Push(const Source& source) {
  sources_.push_back(source);
  std::push_heap(sources_.begin(), sources_.end());
}

VictimWalk::VictimWalk(VictimIndex& index, absl::Time now, int priority,
                       const std::set<SessionId>& sessions)
    : index_(index), now_(now), priority_(priority) {
  for (SessionId session : sessions) PushGroups(session);
}

VictimWalk::Rank VictimWalk::RankOf(int priority, bool waits) const {
  if (priority > priority_) return Rank::kHigherPriority;
  return waits ? Rank::kWaits : Rank::kOthers;
}

VictimWalk::Source VictimWalk::SourceOf(const VictimHeadsKey& key,
                                        const VictimHead& head) const {
  Source source;
  source.rank = RankOf(key.priority, key.waits);
  source.score = index_.Score(key, head, now_);
  source.clean = key.kind.clean;
  source.size = head.size;
  source.session = head.session;
  source.buffer = head.buffer;
  source.group = head.group;
  source.owner = head.owner;
  source.at = head.at;
  source.is_head = true;
  return source;
}

void VictimWalk::PushNextHead(const VictimGroup& group) {
  const auto next = std::next(group.head);
  if (next != group.heads->second.heads.end()) {
    const Source source = SourceOf(group.heads->first, *next);
    Fetch(source);
    Push(source);
  }
}

void VictimWalk::PushEntry(VictimGroup& group,
                           std::set<VictimEntry>::const_iterator entry) {
  if (entry == group.entries.end()) return;
  Source source;
  source.rank = RankOf(group.owner->priority, group.owner->waits());
  source.score = index_.Score(group, *entry, now_);
  source.clean = group.kind.clean;
  source.size = entry->size;
  source.session = group.owner->session->id;
  source.buffer = entry->id;
  source.group = &group;
  source.owner = group.owner;
  source.at = entry->buffer;
  source.entry = entry;
  core::Fetch(source.at, sizeof(Buffer));
  Push(source);
}

void VictimWalk::PushGroups(SessionId session) {
  VictimIndex::Groups* groups = index_.GroupsOf(session);
  if (groups == nullptr) return;
  for (auto& [kind, group] : *groups) {
    if (group.owner->offers(kind) &&
        std::find(opened_.begin(), opened_.end(), &group) == opened_.end()) {
      opened_.push_back(&group);
      PushEntry(group, group.entries.begin());
    }
  }
}

void VictimWalk::GoOn() {
  if (last_.group == nullptr) return;
  if (last_.is_head) PushNextHead(*last_.group);
  if (!leave_group_) PushEntry(*last_.group, std::next(last_.entry));
  leave_group_ = false;
  last_ = Source();
}

bool VictimWalk::Next(Candidate* candidate) {
  while (true) {
    GoOn();
    if (sources_.empty()) {
      for (SessionId session : std::exchange(kept_, {})) PushGroups(session);
    }
    if (sources_.empty()) return false;
    std::pop_heap(sources_.begin(), sources_.end());
    last_ = sources_.back();
    sources_.pop_back();
    const bool stale = !last_.group->owner->offers(last_.group->kind);
    if (stale) stale_.push_back(last_.group);
    leave_group_ = stale || std::find(left_.begin(), left_.end(),
                                      last_.session) != left_.end();
    if (leave_group_) continue;
    if (last_.is_head) {
      last_.entry = last_.group->entries.begin();
      opened_.push_back(last_.group);
    }
    *candidate = {last_.group->owner, last_.entry->buffer, last_.group->kind};
    return true;
  }
}

void VictimWalk::LeaveSession() {
  left_.push_back(last_.session);
  leave_group_ = true;
}

void VictimWalk::KeepOnly(std::vector<SessionId> sessions) {
  last_.is_head = false;
  const auto leave = [&](const Source& source) {
    return source.is_head || std::find(sessions.begin(), sessions.end(),
                                       source.session) == sessions.end();
  };
  sources_.erase(std::remove_if(sources_.begin(), sources_.end(), leave),
                 sources_.end());
  std::make_heap(sources_.begin(), sources_.end());
  kept_ = std::move(sessions);
}

}  // namespace mets::core
