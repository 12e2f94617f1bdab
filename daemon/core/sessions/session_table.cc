#include "daemon/core/sessions/session_table.h"

#include <algorithm>

#include "common/base/check.h"
#include "daemon/core/costs/totals.h"

namespace mets::core {

Session& SessionTable::Add(SessionId id, DomainId domain,
                           const std::string& name) {
  auto [it, added] = sessions_.try_emplace(id);
  METS_CHECK(added) << "session " << id << " exists";
  Skip(id);
  Session& session = it->second;
  by_id_[id] = &session;
  session.id = id;
  session.domain = domain;
  session.holdings.resize(devices_);
  Job& job = jobs_[{domain, name}];
  job.domain = domain;
  job.name = name;
  job.devices.resize(devices_);
  if (job.empty_since != absl::InfiniteFuture()) {
    empty_[domain].erase({job.empty_since, name});
  }
  job.empty_since = absl::InfiniteFuture();
  job.sessions.insert(id);
  session.job = &job;
  return session;
}

void SessionTable::Remove(SessionId id, absl::Time now) {
  auto it = sessions_.find(id);
  METS_CHECK(it != sessions_.end()) << "no session " << id;
  Job& job = *it->second.job;
  job.sessions.erase(id);
  if (job.sessions.empty()) {
    job.empty_since = now;
    empty_[job.domain].emplace(now, job.name);
  }
  for (size_t i = 0; i < devices_; ++i) {
    AddTotals(it->second.holdings[i].totals, &job.devices[i].ended);
  }
  by_id_.erase(id);
  sessions_.erase(it);
}

Session* SessionTable::Find(SessionId id) {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

Job* SessionTable::FindJob(DomainId domain, const std::string& name) {
  auto it = jobs_.find({domain, name});
  return it == jobs_.end() ? nullptr : &it->second;
}

Bytes SessionTable::JobBytes(const Job& job, size_t device) const {
  Bytes sum = job.devices[device].pending;
  for (SessionId id : job.sessions) {
    sum += by_id_.find(id)->second->holdings[device].bytes();
  }
  return sum;
}

bool SessionTable::Attached(const Job& job, size_t device) const {
  return std::any_of(
      job.sessions.begin(), job.sessions.end(),
      [&](SessionId id) { return sessions_.at(id).holdings[device].attached; });
}

void SessionTable::DropEmptyJobs(absl::Time now, absl::Duration age,
                                 size_t most) {
  for (auto it = empty_.begin(); it != empty_.end();) {
    auto& [domain, jobs] = *it;
    while (jobs.size() > most ||
           (!jobs.empty() && jobs.begin()->first + age <= now)) {
      jobs_.erase({domain, jobs.begin()->second});
      jobs.erase(jobs.begin());
    }
    it = jobs.empty() ? empty_.erase(it) : std::next(it);
  }
}

absl::Time SessionTable::NextDrop(absl::Duration age) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [domain, jobs] : empty_) {
    if (!jobs.empty()) next = std::min(next, jobs.begin()->first + age);
  }
  return next;
}

}  // namespace mets::core
