#include "daemon/core/scheduling/thrash_meter.h"

namespace mets::core {

void ThrashMeter::Look(absl::Time now,
                       const std::map<const void*, Spent>& spent) {
  if (now - since_ < kWindow) return;
  if (since_ != absl::InfinitePast()) {
    Bytes sum;
    int movers = 0, waiters = 0;
    for (const auto& [job, now_spent] : spent) {
      const auto before = before_.find(job);
      if (before == before_.end()) continue;
      const Bytes bytes = now_spent.moved - before->second.moved;
      if (bytes <= Bytes()) continue;
      sum += bytes;
      ++movers;
      waiters +=
          now_spent.waited - before->second.waited >= kShare * (now - since_);
    }
    const double seconds = static_cast<double>(sum.count()) / bus_;
    const bool bad = waiters >= 2 ||
                     (movers >= 2 &&
                      seconds >= kShare * absl::ToDoubleSeconds(now - since_));
    bad_windows_ = bad ? bad_windows_ + 1 : 0;
  }
  since_ = now;
  before_ = spent;
}

void ThrashMeter::Reset() {
  since_ = absl::InfinitePast();
  before_.clear();
  bad_windows_ = 0;
}

}  // namespace mets::core
