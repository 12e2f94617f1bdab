#include "daemon/core/moves/move_pacer.h"

#include <algorithm>

namespace mets::core {
namespace {

// What may move at once, as a part of a second's bytes.
constexpr double kBurstSeconds = 0.01;
constexpr double kLeastBusShare = 0.05;
// Nothing is tried again sooner.
constexpr absl::Duration kShortestPause = absl::Microseconds(50);

}  // namespace

MovePacer::Bucket& MovePacer::Of(int high) {
  return buckets_.try_emplace(high, bus_).first->second;
}

double MovePacer::RateOf(const Bucket& bucket) const {
  return std::max(kLeastBusShare * bus_,
                  bound_ / bucket.interference.PerByteRate());
}

double MovePacer::LevelOf(const Bucket& bucket, absl::Time now) const {
  const double rate = RateOf(bucket);
  const double most = rate * kBurstSeconds;
  if (bucket.filled == absl::InfinitePast()) return most;
  return std::min(
      most, bucket.level + rate * absl::ToDoubleSeconds(now - bucket.filled));
}

void MovePacer::Charge(absl::Time now, int high, Bytes bytes) {
  Bucket& bucket = Of(high);
  const double moved = static_cast<double>(bytes.count());
  bucket.level = LevelOf(bucket, now) - moved;
  bucket.filled = now;
  bucket.moved += moved;
}

bool MovePacer::InDebt(absl::Time now, int low) const {
  for (auto it = buckets_.upper_bound(low); it != buckets_.end(); ++it) {
    if (LevelOf(it->second, now) < 0) return true;
  }
  return false;
}

absl::Time MovePacer::FreeAt(absl::Time now, int high) const {
  auto it = buckets_.find(high);
  if (it == buckets_.end()) return absl::InfinitePast();
  const double level = LevelOf(it->second, now);
  if (level >= 0) return absl::InfinitePast();
  return now +
         std::max(kShortestPause, absl::Seconds(-level / RateOf(it->second)));
}

double MovePacer::Rate(int high) const {
  auto it = buckets_.find(high);
  if (it != buckets_.end()) return RateOf(it->second);
  return RateOf(Bucket(bus_));
}

void MovePacer::OnStep(int high, const Step& step) {
  Bucket& bucket = Of(high);
  Told& told = bucket.told[step.session];
  const bool same = step.signature != 0 && step.alone && told.step.alone &&
                    step.signature == told.step.signature &&
                    step.steps > told.step.steps;
  if (same && step.duration > absl::ZeroDuration()) {
    // Only while it computed, bytes were counted.
    const double computed = absl::ToDoubleSeconds(step.duration) *
                            static_cast<double>(step.steps - told.step.steps);
    bucket.interference.Add(step.session, step.signature, step.duration,
                            (bucket.moved - told.moved) / computed);
  }
  told = {step, bucket.moved};
}

void MovePacer::Forget(SessionId session) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    it->second.told.erase(session);
    it->second.interference.Forget(session);
    it = it->second.told.empty() ? buckets_.erase(it) : std::next(it);
  }
}

}  // namespace mets::core
