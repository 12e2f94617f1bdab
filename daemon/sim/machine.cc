#include "daemon/sim/machine.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace mets::sim {

void BusDirection::Copy(SessionId job, Bytes bytes,
                        std::function<void()> done) {
  const double begin = std::max(free_at_, world_.now());
  free_at_ = begin + static_cast<double>(bytes.count()) / speed_;
  world_.At(begin, [this, job] { processor_.ChangeCopying(job, speed_); });
  world_.At(free_at_, [this, job, done = std::move(done)] {
    processor_.ChangeCopying(job, -speed_);
    done();
  });
}

void Processor::Run(SessionId job, double seconds, std::function<void()> done) {
  Advance();
  running_[++last_] = {job, seconds, std::move(done)};
  Schedule();
}

void Processor::ChangeCopying(SessionId job, double bytes_per_second) {
  Advance();
  copying_[job] += bytes_per_second;
  if (!running_.empty()) Schedule();
}

double Processor::Of(const std::map<SessionId, double>& seconds,
                     SessionId job) {
  auto it = seconds.find(job);
  return it == seconds.end() ? 0 : it->second;
}

double Processor::Slowdown(SessionId job) const {
  double rate = 0;
  for (const auto& [other, bytes_per_second] : copying_) {
    if (other != job) rate += bytes_per_second;
  }
  return std::min(0.9, rate * kSlowdownPerCopyRate);
}

void Processor::Advance() {
  const double passed = world_.now() - advanced_;
  advanced_ = world_.now();
  if (running_.empty()) return;
  const double each = passed / static_cast<double>(running_.size());
  for (auto& [number, op] : running_) {
    const double slowdown = Slowdown(op.job);
    op.left -= each * (1 - slowdown);
    slowed_[op.job] += passed * slowdown;
    shared_[op.job] += (passed - each) * (1 - slowdown);
  }
}

void Processor::Schedule() {
  if (running_.empty()) return;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [number, op] : running_) {
    least = std::min(least, op.left / (1 - Slowdown(op.job)));
  }
  const uint64_t version = ++version_;
  const double after =
      std::max(0.0, least) * static_cast<double>(running_.size());
  world_.After(after, [this, version] {
    if (version != version_) return;
    Advance();
    constexpr double kRounding = 1e-12;
    std::vector<std::function<void()>> ended;
    for (auto it = running_.begin(); it != running_.end();) {
      if (it->second.left > kRounding) {
        ++it;
        continue;
      }
      ended.push_back(std::move(it->second.done));
      it = running_.erase(it);
    }
    Schedule();
    for (auto& done : ended) done();
  });
}

}  // namespace mets::sim
