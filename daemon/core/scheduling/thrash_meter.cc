#include "daemon/core/scheduling/thrash_meter.h"

namespace mets::core {

void ThrashMeter::Look(absl::Time now,
                       const std::map<const void*, Bytes>& moved) {
  if (now - since_ < kWindow) return;
  if (since_ != absl::InfinitePast()) {
    Bytes sum;
    int movers = 0;
    for (const auto& [job, bytes] : moved) {
      auto before = before_.find(job);
      if (before == before_.end() || bytes <= before->second) continue;
      sum += bytes - before->second;
      ++movers;
    }
    const double seconds = static_cast<double>(sum.count()) / bus_;
    const bool bad =
        movers >= 2 &&
        seconds >= kMovingShare * absl::ToDoubleSeconds(now - since_);
    bad_windows_ = bad ? bad_windows_ + 1 : 0;
  }
  since_ = now;
  before_ = moved;
}

void ThrashMeter::Reset() {
  since_ = absl::InfinitePast();
  before_.clear();
  bad_windows_ = 0;
}

}  // namespace mets::core
