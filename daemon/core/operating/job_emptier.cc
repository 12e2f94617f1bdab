#include "daemon/core/operating/job_emptier.h"

#include <algorithm>

namespace mets::core {

void JobEmptier::Begin(uint64_t call, const std::vector<Job*>& jobs) {
  Task task;
  task.call = call;
  task.until = state_.now + state_.config.order_timeout;
  for (const Job* job : jobs) {
    for (size_t i = 0; i < state_.devices.size(); ++i) {
      const Bytes bytes = state_.sessions.JobBytes(*job, i);
      task.before += bytes;
      task.parts.push_back({{job->domain, job->name}, i, bytes});
    }
  }
  tasks_.push_back(std::move(task));
}

bool JobEmptier::Push(Part& part) {
  const Job* job = state_.sessions.FindJob(part.job.first, part.job.second);
  if (job == nullptr) return false;
  Bytes coming;
  for (SessionId id : job->sessions) {
    coming += state_.orders.Coming(id, part.device);
  }
  Bytes ordered;
  if (part.due > Bytes()) {
    ordered =
        reclaimer_.Reclaim({part.device, part.due, job, job, nullptr, true},
                           /*evict=*/true);
    part.due -= ordered;
  }
  const bool grows = part.due > Bytes() && swap_.Growing(job->domain);
  const bool moves = !coming.is_zero() || !ordered.is_zero() || grows;
  if (moves) {
    Device& device = state_.devices[part.device];
    device.retry_at = std::min(device.retry_at, state_.now + kRetryAfter);
  }
  return moves;
}

void JobEmptier::Finish(const Task& task) {
  CommandDone done;
  done.call = task.call;
  for (const Part& part : task.parts) {
    const Job* job = state_.sessions.FindJob(part.job.first, part.job.second);
    if (job != nullptr) {
      done.left += state_.sessions.JobBytes(*job, part.device);
    }
  }
  done.evicted = std::max(Bytes(), task.before - done.left);
  state_.Send(OperatorAction(std::move(done)));
}

void JobEmptier::Advance() {
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    bool moves = false;
    if (state_.now < task->until) {
      for (Part& part : task->parts) moves |= Push(part);
    }
    if (!moves) Finish(*task);
    task = moves ? std::next(task) : tasks_.erase(task);
  }
}

}  // namespace mets::core
