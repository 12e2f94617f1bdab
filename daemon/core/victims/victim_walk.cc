#include "daemon/core/victims/victim_walk.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "daemon/core/victims/fetch.h"

namespace mets::core {
namespace {

// How many of the best heads are fetched ahead.
constexpr size_t kFetched = 8;

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
    FetchHead(*sources_[i].head);
  }
}

void VictimWalk::FetchHead(const VictimHead& head) {
  Fetch(*head.group);
  Fetch(*head.at);
  Fetch(*head.owner);
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
  source.at = head.at;
  source.head = &head;
  return source;
}

void VictimWalk::PushNextHead() {
  const auto& [key, set] = *last_.group->heads;
  const size_t better = last_.better + 1;
  if (better == set.heads.size()) return;
  Source next = SourceOf(key, *(set.heads.rbegin() + better));
  next.better = better;
  FetchHead(*next.head);
  Push(next);
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
  source.at = entry->buffer;
  source.entry = entry;
  Fetch(*source.at);
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

// What GoOn looks at once the next best is the last one, which takes two reads,
// one after the other.
void VictimWalk::FetchBehind() {
  for (size_t i = 1; i < std::min<size_t>(sources_.size(), 3); ++i) {
    const Source& soon = sources_[i];
    if (soon.head == nullptr) continue;
    Fetch(soon.group->heads->second);
    Fetch(*soon.group->entries.begin());
  }
  if (sources_.empty()) return;
  const Source& next = sources_[0];
  auto entry = next.entry;
  if (next.head != nullptr) {
    const VictimHeads& heads = next.group->heads->second.heads;
    if (next.better + 1 < heads.size()) {
      Fetch(*(heads.rbegin() + next.better + 1));
    }
    entry = next.group->entries.begin();
  }
  if (++entry != next.group->entries.end()) Fetch(*entry);
}

void VictimWalk::GoOn() {
  if (last_.group == nullptr) return;
  if (last_.head != nullptr) PushNextHead();
  if (opens_last_) PushEntry(*last_.group, std::next(last_.entry));
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
    opens_last_ = !stale && !HasLeft(*last_.group);
    if (!opens_last_) continue;
    FetchBehind();
    *candidate = {last_.group, last_.at, last_.size};
    if (last_.head != nullptr) {
      last_.entry = last_.group->entries.begin();
      Fetch(*last_.entry);
      opened_.push_back(last_.group);
    }
    return true;
  }
}

void VictimWalk::Take(Bytes bytes, size_t count, Candidates* candidates) {
  Candidate candidate;
  while (bytes > Bytes() || candidates->size() < count) {
    if (!Next(&candidate)) return;
    bytes -= candidate.size;
    candidates->push_back(candidate);
  }
}

bool VictimWalk::HasLeft(const VictimGroup& group) const {
  if (left_.empty() && left_groups_.empty()) return false;
  return std::find(left_.begin(), left_.end(), group.owner->session->id) !=
             left_.end() ||
         std::find(left_groups_.begin(), left_groups_.end(), &group) !=
             left_groups_.end();
}

void VictimWalk::KeepOnly(std::vector<SessionId> sessions) {
  last_.head = nullptr;
  const auto leave = [&](const Source& source) {
    return source.head != nullptr ||
           std::find(sessions.begin(), sessions.end(), source.session) ==
               sessions.end();
  };
  sources_.erase(std::remove_if(sources_.begin(), sources_.end(), leave),
                 sources_.end());
  std::make_heap(sources_.begin(), sources_.end());
  kept_ = std::move(sessions);
}

}  // namespace mets::core
