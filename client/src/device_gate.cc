// Device: turns on the device.
#include <utility>

#include "client/src/device.h"
#include "client/src/homecoming.h"
#include "common/base/clock.h"

namespace mets::client {

bool Device::UsesDevice(const mets_access* accesses, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (accesses[i].kind == METS_NEW || Owns(accesses[i].address)) return true;
  }
  return false;
}

bool Device::NothingPinned() {
  absl::MutexLock lock(&mutex_);
  for (Buffer& buffer : buffers_.all()) {
    if (buffer.word.phase() != Phase::kFree && buffer.word.pinned()) {
      return false;
    }
  }
  return true;
}

void Device::FollowGate(const v1::Gate& order) {
  gate_.Follow(order);
  const bool quantum = order.state() == v1::GATE_STATE_OPEN &&
                       order.idle_ms() > 0 &&
                       order.moment() != v1::GATE_MOMENT_STEP_END;
  // A section brings all back itself, and a plan what it has room for.
  if (!quantum || options_.gated || plan_runner_.following()) return;
  if (away_.load(std::memory_order_relaxed) > 0) returner_.Begin();
}

absl::Status Device::EnterSection() {
  // Also while the gate is not needed: a section pins nothing.
  const bool counted = CurrentOp() == nullptr;
  if (counted) gate_.Enter();
  if (options_.gated && away_.load(std::memory_order_relaxed) > 0) {
    const WaitClock::Wait wait(waits_);
    const WaitClock::Wait stall(stalls_);
    absl::Status status = Homecoming(*this).Run(SteadyNow() + options_.wait);
    if (!status.ok()) {
      if (counted) gate_.Leave();
      return status;
    }
  }
  Op* op = NewOp(this);
  op->counted = counted;
  op->section = true;
  PushCurrentOp(op);
  return absl::OkStatus();
}

void Device::LeaveSection() {
  Op* op = CurrentOp();
  if (op != nullptr && op->section && op->device == this) EndOp(op);
}

void Device::StepEnds() {
  hinted_.store(true, std::memory_order_relaxed);
  EndStep();
}

void Device::EndStep() {
  const absl::Duration waited = waits_.waited();
  {
    absl::MutexLock lock(&mutex_);
    const std::optional<steps::StepMeter::Need> need = step_meter_.StepEnds(
        SteadyNow(), buffer_bytes_ + swapped_bytes_, waited);
    if (need.has_value()) {
      v1::ClientMessage message;
      v1::StepNeed* told = message.mutable_step_need();
      told->set_device(options_.id);
      told->set_peak_bytes(need->peak.count());
      told->set_persistent_bytes(need->persistent.count());
      told->set_step_us(absl::ToInt64Microseconds(need->step));
      SendLocked(std::move(message));
    }
  }
  gate_.StepEnds();
}

}  // namespace mets::client
