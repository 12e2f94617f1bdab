#include "daemon/status_page/sampler.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mets::status_page {
namespace {

using JobKey = std::pair<DomainId, std::string>;

std::map<JobKey, core::Totals> TotalsOf(const core::Status& status,
                                        const std::string& device) {
  std::map<JobKey, core::Totals> totals;
  for (const core::JobStatus& job : status.jobs) {
    if (job.device == device) totals[{job.domain, job.name}] = job.totals;
  }
  return totals;
}

double PerSecond(Bytes bytes, absl::Duration time) {
  if (time <= absl::ZeroDuration()) return 0;
  return static_cast<double>(bytes.count()) / absl::ToDoubleSeconds(time);
}

}  // namespace

DevicePoint PointOf(const core::Status& before, const core::Status& now,
                    size_t device, absl::Duration between) {
  const core::DeviceStatus& status = now.devices[device];
  const auto earlier = TotalsOf(before, status.id);
  Bytes evicted, restored;
  for (const auto& [job, totals] : TotalsOf(now, status.id)) {
    const auto it = earlier.find(job);
    const core::Totals none;
    const core::Totals& was = it == earlier.end() ? none : it->second;
    evicted += std::max(Bytes(), totals.evicted - was.evicted);
    restored += std::max(Bytes(), totals.restored - was.restored);
  }
  DevicePoint point;
  point.resident = status.resident;
  point.swapped = status.swap_used;
  point.evicted_per_second = PerSecond(evicted, between);
  point.restored_per_second = PerSecond(restored, between);
  return point;
}

Sampler::Sampler(const core::StatusSource& source, const Clock& clock,
                 absl::Duration period)
    : source_(source), clock_(clock), period_(period) {
  Take();
  thread_ = std::thread([this] { Run(); });
}

Sampler::~Sampler() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Sampler::Take() {
  auto now = std::make_shared<const core::Status>(source_.GetStatus());
  const absl::Time time = clock_.Now();
  absl::MutexLock lock(&mutex_);
  Sample sample;
  sample.number = samples_.empty() ? 1 : samples_.back().number + 1;
  sample.time = time;
  const absl::Duration between =
      samples_.empty() ? absl::ZeroDuration() : time - samples_.back().time;
  const core::Status& before = status_ == nullptr ? *now : *status_;
  for (size_t i = 0; i < now->devices.size(); ++i) {
    sample.devices.push_back(PointOf(before, *now, i, between));
  }
  status_ = std::move(now);
  samples_.push_back(std::move(sample));
  if (samples_.size() > kKept) samples_.pop_front();
}

std::shared_ptr<const core::Status> Sampler::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

std::vector<Sample> Sampler::Samples(uint64_t after) const {
  absl::MutexLock lock(&mutex_);
  std::vector<Sample> found;
  for (const Sample& sample : samples_) {
    if (sample.number > after) found.push_back(sample);
  }
  return found;
}

void Sampler::Run() {
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  };
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping), period_)) return;
    }
    Take();
  }
}

}  // namespace mets::status_page
