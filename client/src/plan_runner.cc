#include "client/src/plan_runner.h"

#include <pthread.h>

#include <algorithm>

namespace mets::client {

PlanRunner::~PlanRunner() {
  Stop();
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void PlanRunner::Start(const v1::Plan& plan) {
  while (threads_.size() < 2 * static_cast<size_t>(moves_)) {
    threads_.emplace_back([this] { RunOut(); });
    pthread_setname_np(threads_.back().native_handle(), "mets-plan-out");
    threads_.emplace_back([this] { RunIn(); });
    pthread_setname_np(threads_.back().native_handle(), "mets-plan-in");
  }
  absl::MutexLock lock(&mutex_);
  slots_.clear();
  for (const v1::PlanSlot& slot : plan.slots()) {
    slots_[slot.buffer()] = slot.slot();
  }
  following_.store(true, std::memory_order_relaxed);
}

void PlanRunner::Stop() {
  Drop();
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return evicting_.empty() && restoring_ == 0;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&idle));
}

void PlanRunner::Drop() {
  absl::MutexLock lock(&mutex_);
  following_.store(false, std::memory_order_relaxed);
  ended_ += leave_.size();
  leave_.clear();
  back_.clear();
}

void PlanRunner::Post(const BufferMoves& moves) {
  absl::MutexLock lock(&mutex_);
  if (!following()) return;
  for (uint64_t buffer : moves.back) {
    DropLeave(buffer);
    if (back_.empty()) ++changes_;  // It has not been tried.
    back_.push_back(buffer);
  }
  for (const BufferMoves::Leave& leave : moves.leave) {
    DropBack(leave.buffer);
    if (!slots_.contains(leave.logical)) continue;
    leave_.push_back({++due_, leave});
  }
}

void PlanRunner::DropLeave(uint64_t buffer) {
  const auto end = std::remove_if(
      leave_.begin(), leave_.end(),
      [buffer](const Eviction& e) { return e.leave.buffer == buffer; });
  ended_ += leave_.end() - end;
  leave_.erase(end, leave_.end());
}

void PlanRunner::DropBack(uint64_t buffer) {
  back_.erase(std::remove(back_.begin(), back_.end(), buffer), back_.end());
  ++changes_;  // There may be memory for the one that is the first now.
}

void PlanRunner::TakeBack(uint64_t buffer) {
  if (!back_.empty() && back_.front() == buffer) back_.pop_front();
  tried_ = 0;
}

void PlanRunner::Retry() {
  absl::MutexLock lock(&mutex_);
  ++changes_;
}

void PlanRunner::RunOut() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || !leave_.empty();
  };
  absl::MutexLock lock(&mutex_);
  for (;;) {
    mutex_.Await(absl::Condition(&ready));
    if (ending_) return;
    const Eviction eviction = leave_.front();
    const v1::Slot slot = slots_.at(eviction.leave.logical);
    leave_.pop_front();
    evicting_.insert(eviction.number);
    mutex_.Unlock();
    mover_.evict(eviction.leave.buffer, slot);
    mutex_.Lock();
    evicting_.erase(eviction.number);
    ++ended_;
  }
}

void PlanRunner::RunIn() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || CanRestore();
  };
  absl::MutexLock lock(&mutex_);
  for (;;) {
    mutex_.Await(absl::Condition(&ready));
    if (ending_) return;
    const uint64_t buffer = back_.front();
    tried_ = changes_;
    ++restoring_;
    trying_ = true;
    bool tries = true;
    const auto ends = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      tries = trying_ = false;
      TakeBack(buffer);
    };
    mutex_.Unlock();
    const bool done = mover_.restore(buffer, [&] {
      absl::MutexLock lock(&mutex_);
      ends();
    });
    mutex_.Lock();
    --restoring_;
    if (!tries) continue;
    trying_ = false;
    if (done) TakeBack(buffer);
  }
}

PlanRunner::Demand::Demand(PlanRunner& runner) : runner_(runner) {
  absl::MutexLock lock(&runner_.mutex_);
  ++runner_.demands_;
  last_ = runner_.due_;
}

PlanRunner::Demand::~Demand() {
  absl::MutexLock lock(&runner_.mutex_);
  --runner_.demands_;
}

bool PlanRunner::Demand::AwaitEviction() {
  absl::MutexLock lock(&runner_.mutex_);
  const uint64_t ended = runner_.ended_;
  if (!runner_.Lasts(last_)) return false;
  const auto more = [this, ended]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                        runner_.mutex_) { return runner_.ended_ != ended; };
  runner_.mutex_.Await(absl::Condition(&more));
  return true;
}

}  // namespace mets::client
