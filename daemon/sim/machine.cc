#include "daemon/sim/machine.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mets::sim {

void BusDirection::Copy(Bytes bytes, std::function<void()> done) {
  free_at_ = std::max(free_at_, world_.now()) +
             static_cast<double>(bytes.count()) / speed_;
  world_.At(free_at_, std::move(done));
}

void Processor::Run(double seconds, std::function<void()> done) {
  Advance();
  running_[++last_] = {seconds, std::move(done)};
  Schedule();
}

void Processor::Advance() {
  const double passed = world_.now() - advanced_;
  advanced_ = world_.now();
  if (running_.empty()) return;
  const double each = passed / static_cast<double>(running_.size());
  for (auto& [number, op] : running_) op.left -= each;
}

void Processor::Schedule() {
  if (running_.empty()) return;
  double least = running_.begin()->second.left;
  for (const auto& [number, op] : running_) least = std::min(least, op.left);
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
