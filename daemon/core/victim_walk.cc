#include "daemon/core/victim_walk.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mets::core {

bool VictimWalk::Source::operator<(const Source& other) const {
  const auto key = [](const Source& s) {
    return std::make_tuple(!s.later, s.score, s.clean, s.entry->size);
  };
  const auto ids = [](const Source& s) {
    return std::make_pair(s.group->owner->session->id, s.entry->id);
  };
  if (key(*this) != key(other)) return key(*this) < key(other);
  return ids(*this) > ids(other);
}

VictimWalk::VictimWalk(const VictimIndex& index, absl::Time now, int priority)
    : index_(index), now_(now), priority_(priority) {
  for (const auto& [key, heads] : index.heads()) PushHead(heads, heads.begin());
}

VictimWalk::VictimWalk(const VictimIndex& index, absl::Time now, int priority,
                       const std::set<SessionId>& sessions)
    : index_(index), now_(now), priority_(priority) {
  for (SessionId session : sessions) PushGroups(session);
}

void VictimWalk::Push(Source source) {
  const VictimOwner& owner = *source.group->owner;
  source.later = owner.priority > priority_;
  source.clean = source.group->kind.clean;
  source.score = index_.Score(owner, *source.entry->buffer, now_);
  sources_.push(source);
}

void VictimWalk::PushHead(const VictimHeads& heads,
                          VictimHeads::const_iterator head) {
  if (head == heads.end()) return;
  Source source;
  source.group = head->group;
  source.entry = head->group->entries.begin();
  source.heads = &heads;
  source.head = head;
  Push(source);
}

void VictimWalk::PushEntry(const VictimGroup& group,
                           std::set<VictimEntry>::const_iterator entry) {
  if (entry == group.entries.end()) return;
  Source source;
  source.group = &group;
  source.entry = entry;
  Push(source);
}

void VictimWalk::PushGroups(SessionId session) {
  const VictimIndex::Groups* groups = index_.GroupsOf(session);
  if (groups == nullptr) return;
  for (const auto& [kind, group] : *groups) {
    if (opened_.insert(&group).second) PushEntry(group, group.entries.begin());
  }
}

void VictimWalk::GoOn() {
  if (last_.group == nullptr) return;
  if (last_.heads != nullptr) PushHead(*last_.heads, std::next(last_.head));
  if (!leave_group_) PushEntry(*last_.group, std::next(last_.entry));
  leave_group_ = false;
  last_ = Source();
}

bool VictimWalk::Next(Candidate* candidate) {
  while (true) {
    GoOn();
    if (sources_.empty()) return false;
    last_ = sources_.top();
    sources_.pop();
    const Session& session = *last_.group->owner->session;
    if (left_.count(session.id) > 0) {
      leave_group_ = true;
      continue;
    }
    opened_.insert(last_.group);
    *candidate = {&session, last_.entry->buffer, last_.group->kind};
    return true;
  }
}

void VictimWalk::LeaveSession() {
  left_.insert(last_.group->owner->session->id);
  leave_group_ = true;
}

void VictimWalk::KeepOnly(const std::vector<SessionId>& sessions) {
  last_.heads = nullptr;
  std::priority_queue<Source> all = std::exchange(sources_, {});
  for (; !all.empty(); all.pop()) {
    const Source& source = all.top();
    const SessionId id = source.group->owner->session->id;
    if (source.heads == nullptr &&
        std::find(sessions.begin(), sessions.end(), id) != sessions.end()) {
      sources_.push(source);
    }
  }
  for (SessionId session : sessions) PushGroups(session);
}

}  // namespace mets::core
