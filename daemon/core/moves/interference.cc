#include "daemon/core/moves/interference.h"

#include <algorithm>
#include <vector>

namespace mets::core {
namespace {

// Of the bus, one way: fewer bytes a second do not count as copies, and a
// slowdown is measured from more on.
constexpr double kQuietShare = 0.01;
constexpr double kBusyShare = 0.05;
// How many samples are enough, and how many are kept.
constexpr size_t kFewestQuiet = 3, kMostQuiet = 8;
constexpr size_t kFewestSlowdowns = 5, kMostSlowdowns = 15;
constexpr double kLeast = Interference::kPrior / 4;

void Append(double value, size_t most, std::deque<double>* values) {
  values->push_back(value);
  if (values->size() > most) values->pop_front();
}

double Median(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

void Interference::Add(SessionId session, uint64_t signature,
                       absl::Duration duration, double bytes_per_second) {
  Quiet& quiet = quiet_[session];
  if (quiet.signature != signature) quiet = {signature, {}};
  const double seconds = absl::ToDoubleSeconds(duration);
  if (bytes_per_second < kQuietShare * bus_) {
    Append(seconds, kMostQuiet, &quiet.seconds);
  } else if (bytes_per_second >= kBusyShare * bus_ &&
             quiet.seconds.size() >= kFewestQuiet) {
    const double slowdown = seconds / Median(quiet.seconds) - 1;
    Append(slowdown / bytes_per_second, kMostSlowdowns, &slowdowns_);
  }
}

double Interference::PerByteRate() const {
  if (slowdowns_.size() < kFewestSlowdowns) return kPrior;
  return std::max(kLeast, Median(slowdowns_));
}

}  // namespace mets::core
