// DurationHistogram: how often durations fell between fixed bounds.
#ifndef METS_DAEMON_CORE_COSTS_DURATION_HISTOGRAM_H_
#define METS_DAEMON_CORE_COSTS_DURATION_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace mets::core {

// `Bounds::kBounds` is an array of ascending durations. Plain data; not
// thread-safe.
template <typename Bounds>
class DurationHistogram {
 public:
  // Buckets: one below each bound (which belongs to it), one above all.
  static constexpr size_t kBuckets = Bounds::kBounds.size() + 1;

  static const auto& bounds() { return Bounds::kBounds; }

  void Add(absl::Duration duration) {
    const auto bound =
        std::lower_bound(bounds().begin(), bounds().end(), duration);
    ++counts_[bound - bounds().begin()];
    sum_ += duration;
  }
  void Add(const DurationHistogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
  }

  // Of each bucket alone, not of those below as well.
  const std::array<int64_t, kBuckets>& counts() const { return counts_; }
  absl::Duration sum() const { return sum_; }
  int64_t count() const {
    int64_t all = 0;
    for (int64_t count : counts_) all += count;
    return all;
  }

 private:
  std::array<int64_t, kBuckets> counts_ = {};
  absl::Duration sum_;
};

// How long requests for memory wait: a hand-over takes milliseconds, and after
// 60 s most give up.
struct WaitBounds {
  static constexpr std::array<absl::Duration, 4> kBounds = {
      absl::Milliseconds(10), absl::Milliseconds(100), absl::Seconds(1),
      absl::Seconds(10)};
};
using WaitHistogram = DurationHistogram<WaitBounds>;

// How long one Step of the core takes.
struct DecisionBounds {
  static constexpr std::array<absl::Duration, 8> kBounds = {
      absl::Microseconds(1),  absl::Microseconds(3),   absl::Microseconds(10),
      absl::Microseconds(30), absl::Microseconds(100), absl::Microseconds(300),
      absl::Milliseconds(1),  absl::Milliseconds(10)};
};
using DecisionHistogram = DurationHistogram<DecisionBounds>;

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_COSTS_DURATION_HISTOGRAM_H_
