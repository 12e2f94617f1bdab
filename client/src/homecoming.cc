#include "client/src/homecoming.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

constexpr size_t kThreads = 4;
// Asked for at a time, by one thread; a larger buffer alone.
constexpr Bytes kBatch = MiB(128);
constexpr size_t kMostInBatch = 16;
// The slots that buffers have left are free for others' once metsd knows of it.
constexpr absl::Duration kTellEvery = absl::Milliseconds(5);
constexpr absl::Duration kAskAgain = absl::Milliseconds(2);

}  // namespace

absl::Status Homecoming::Run(absl::Time deadline) {
  absl::MutexLock only(&device_.homecoming_);
  deadline_ = deadline;
  for (;;) {
    std::vector<Absent> absent = Collect();
    if (absent.empty()) return absl::OkStatus();
    BringAll(std::move(absent), kThreads);
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
  }
}

void Homecoming::RunAhead(absl::Duration patience) {
  absl::MutexLock only(&device_.homecoming_);
  deadline_ = absl::InfinitePast();
  patience_ = patience;
  BringAll(Swapped(), static_cast<size_t>(device_.driver_->info().moves));
}

void Homecoming::BringAll(std::vector<Absent> absent, size_t threads) {
  const size_t count = std::min(absent.size(), threads);
  if (count == 0) return;
  {
    absl::MutexLock lock(&mutex_);
    absent_ = std::move(absent);
    next_ = 0;
  }
  std::vector<std::thread> others;
  for (size_t i = 1; i < count; ++i) {
    others.emplace_back([this] { BringSome(); });
  }
  BringSome();
  for (std::thread& thread : others) thread.join();
  // So that nobody makes room for them any more.
  device_.ReportChanges(ReportScope::kAll);
}

std::vector<Homecoming::Absent> Homecoming::Swapped() {
  std::vector<std::pair<uint32_t, Absent>> found;
  {
    absl::MutexLock lock(&device_.mutex_);
    for (Buffer& buffer : device_.buffers_.all()) {
      if (buffer.word.phase() != Phase::kSwapped || buffer.word.freed()) {
        continue;
      }
      // What was used since the last report is the newest.
      static_assert(Buffer::kBegun == 0);
      const uint32_t used =
          buffer.last_use_ms.load(std::memory_order_relaxed) - 1;
      found.push_back(
          {used, {BufferPool::IdOf(buffer), buffer.range_size(), &buffer}});
    }
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Absent> absent;
  for (const auto& [used, one] : found) absent.push_back(one);
  return absent;
}

std::vector<Homecoming::Absent> Homecoming::Collect() {
  for (;;) {
    std::vector<Absent> absent;
    std::vector<Buffer*> stay;
    bool moving = false;
    {
      absl::MutexLock lock(&device_.mutex_);
      for (Buffer& buffer : device_.buffers_.all()) {
        const Phase phase = buffer.word.phase();
        if (phase == Phase::kFree || buffer.word.freed()) continue;
        if (phase == Phase::kSwapped) {
          absent.push_back(
              {BufferPool::IdOf(buffer), buffer.range_size(), &buffer});
        } else if (phase == Phase::kEvicting) {
          if (buffer.word.TryMove(phase, Phase::kResuming)) {
            stay.push_back(&buffer);
          }
          moving = true;
        } else {
          moving |= phase != Phase::kResident;
        }
      }
      if (moving && absent.empty() && stay.empty()) {
        device_.changed_.Wait(&device_.mutex_);
      }
    }
    for (Buffer* buffer : stay) device_.Resume(buffer);
    if (moving && absent.empty()) continue;
    std::sort(absent.begin(), absent.end(),
              [](const Absent& a, const Absent& b) { return b.size < a.size; });
    return absent;
  }
}

std::vector<Homecoming::Absent> Homecoming::Next() {
  std::vector<Absent> some;
  Bytes sum;
  absl::MutexLock lock(&mutex_);
  if (!status_.ok() || (ahead() && device_.gate_.closed())) return some;
  while (next_ < absent_.size() && some.size() < kMostInBatch) {
    if (!some.empty() && sum + absent_[next_].size > kBatch) break;
    sum += absent_[next_].size;
    some.push_back(absent_[next_++]);
  }
  return some;
}

void Homecoming::BringSome() {
  for (;;) {
    const std::vector<Absent> some = Next();
    if (some.empty()) return;
    absl::Status status = Fetch(some, patience_);
    if (ahead() && absl::IsResourceExhausted(status)) {
      // There may be memory for the first ones.
      status = absl::OkStatus();
      for (size_t i = 0; i < some.size() && status.ok(); ++i) {
        status = Fetch({some[i]}, absl::ZeroDuration());
      }
    }
    if (!status.ok()) return Fail(status);
    if (ShallTell()) device_.ReportChanges(ReportScope::kAll);
  }
}

bool Homecoming::ShallTell() {
  const absl::Time now = SteadyNow();
  absl::MutexLock lock(&mutex_);
  if (now < told_ + kTellEvery) return false;
  told_ = now;
  return true;
}

void Homecoming::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  status_.Update(status);
}

absl::Status Homecoming::Fetch(const std::vector<Absent>& some,
                               absl::Duration patience) {
  METS_ASSIGN_OR_RETURN(const std::vector<ChunkSet> chunks,
                        Memory(some, patience));
  absl::Status status;
  for (size_t i = 0; i < some.size(); ++i) {
    if (status.ok()) {
      status = Bring(some[i], chunks[i]);
    } else {
      device_.ReturnIdle(chunks[i]);
    }
  }
  return status;
}

absl::StatusOr<std::vector<ChunkSet>> Homecoming::Memory(
    const std::vector<Absent>& some, absl::Duration patience) {
  std::vector<Bytes> sizes;
  std::vector<MemoryNeed> needs;
  for (const Absent& absent : some) {
    sizes.push_back(absent.size);
    needs.push_back({absent.size, absent.buffer});
  }
  const absl::Time until = SteadyNow() + patience;
  for (;;) {
    std::vector<ChunkSet> chunks;
    if (device_.TakeLocally(needs, &chunks)) return chunks;
    absl::StatusOr<Grant> grant =
        device_.uplink_.Acquire(device_, sizes, deadline_, {});
    if (grant.ok()) return std::move(grant->ranges);
    if (!absl::IsResourceExhausted(grant.status()) || SteadyNow() >= until ||
        device_.gate_.closed()) {
      return grant.status();
    }
    absl::SleepFor(kAskAgain);
  }
}

absl::Status Homecoming::Bring(const Absent& absent, const ChunkSet& chunks) {
  Buffer* buffer;
  {
    absl::MutexLock lock(&device_.mutex_);
    buffer = device_.buffers_.Find(absent.id);
    if (buffer == nullptr || buffer->word.freed() ||
        !buffer->word.TryMove(Phase::kSwapped, Phase::kRestoring)) {
      device_.PutIdle(chunks);  // It was freed, or a fault was faster.
      return absl::OkStatus();
    }
  }
  absl::Status status = device_.Restore(buffer, chunks);
  if (status.ok()) {
    device_.Unpin(buffer);
  } else {
    device_.ReturnIdle(chunks);
  }
  return status;
}

}  // namespace mets::client
