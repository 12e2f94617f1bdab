// Device: what a plan moves.
#include <optional>
#include <utility>
#include <vector>

#include "client/src/device.h"
#include "client/src/log.h"
#include "common/base/clock.h"

namespace mets::client {

absl::Status Device::FollowPlan(const v1::Plan& plan) {
  absl::MutexLock lock(&plan_mutex_);
  StopPlan();
  ReportChanges(ReportScope::kAll);
  if (plan.absences().empty()) return absl::OkStatus();
  {
    // Mute waits for this plan, or is seen here.
    absl::MutexLock look(&mutex_);
    if (muted_) return absl::UnavailableError("the connection broke");
    plan_budget_ = Bytes(static_cast<int64_t>(plan.budget_bytes()));
  }
  plan_runner_.Start(plan);
  const absl::StatusOr<steps::StepProgram> program =
      step_watch_.Follow(plan, &plan_runner_);
  if (!program.ok()) {
    plan_runner_.Stop();
    return program.status();
  }
  WantChunksFor(*program, plan);
  return absl::OkStatus();
}

void Device::EndPlan() {
  absl::MutexLock lock(&plan_mutex_);
  StopPlan();
}

void Device::StopPlan() {
  step_watch_.Unfollow();
  plan_runner_.Stop();
  absl::MutexLock lock(&mutex_);
  cut_.Want({});
}

void Device::EvictByPlan(uint64_t buffer_id, const v1::Slot& slot) {
  if (Unwanted(buffer_id)) Evict(buffer_id, slot, std::nullopt);
}

std::optional<MemoryNeed> Device::NeedOf(uint64_t buffer_id) {
  Buffer* buffer;
  {
    absl::MutexLock lock(&mutex_);
    for (;;) {
      buffer = buffers_.Find(buffer_id);
      if (buffer == nullptr || buffer->word.freed()) return std::nullopt;
      const Phase phase = buffer->word.phase();
      if (phase == Phase::kSwapped) {
        return MemoryNeed{buffer->range_size(), buffer};
      }
      if (phase == Phase::kEvicting) {
        if (buffer->word.TryMove(phase, Phase::kResuming)) break;
      } else if (phase == Phase::kBlocking || phase == Phase::kUnmapping) {
        changed_.Wait(&mutex_);
      } else {
        return std::nullopt;
      }
    }
  }
  Resume(buffer);
  return std::nullopt;
}

bool Device::RestoreByPlan(uint64_t buffer_id,
                           absl::FunctionRef<void()> has_memory) {
  const std::optional<MemoryNeed> need = NeedOf(buffer_id);
  if (!need.has_value()) return true;
  std::vector<ChunkSet> chunks;
  if (!TakeLocally({*need}, &chunks)) return false;
  has_memory();
  Buffer* buffer;
  {
    absl::MutexLock lock(&mutex_);
    buffer = buffers_.Find(buffer_id);
    if (buffer == nullptr || buffer->word.freed() ||
        !buffer->word.TryMove(Phase::kSwapped, Phase::kRestoring)) {
      PutIdle(chunks[0]);  // An op was faster.
      return true;
    }
  }
  const absl::Status status = Restore(buffer, chunks[0]);
  if (status.ok()) {
    Unpin(buffer);
  } else {
    Log(LogLevel::kWarning, status.message());
    ReturnIdle(chunks[0]);
  }
  return true;
}

bool Device::TakeOrAwait(Bytes size, ChunkSet* chunks) {
  std::optional<PlanRunner::Demand> demand;
  for (;;) {
    std::vector<ChunkSet> local;
    if (TakeLocally({{size}}, &local, Fill::kAboutAsMuch)) {
      *chunks = std::move(local[0]);
      return true;
    }
    if (!AwaitEviction(size, &demand)) return false;
  }
}

bool Device::AwaitEviction(Bytes need,
                           std::optional<PlanRunner::Demand>* demand) {
  if (!demand->has_value()) {
    if (!plan_runner_.following()) return false;
    demand->emplace(plan_runner_);
  }
  {
    absl::MutexLock lock(&mutex_);
    const Bytes unused = chunks_.idle_bytes() + cache_.bytes();
    if (chunks_.held_bytes() - unused + need <= plan_budget_) return false;
  }
  const absl::Time start = SteadyNow();
  if (!(*demand)->AwaitEviction()) return false;
  NoteWait(SteadyNow() - start);
  return true;
}

}  // namespace mets::client
