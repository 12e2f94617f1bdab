// How a SimClient follows a plan: as many copies each way at a time as the
// machine says, in order: with two, the bus copies while the next buffer is
// mapped or the last one unmapped.
#include <algorithm>
#include <utility>

#include "daemon/sim/sim_client.h"

namespace mets::sim {

void SimClient::Follow(const core::PlanOrder& order) {
  // What leaves for the plan before, stays.
  if (plan_evicts_ > 0) {
    for (Buffer& buffer : buffers_) {
      if (buffer.phase != Phase::kLeaving || !buffer.by_plan) continue;
      buffer.copy = 0;
      buffer.phase = Phase::kResident;
    }
  }
  to_evict_.clear();
  to_restore_.clear();
  plan_slots_.clear();
  plan_budget_ = Bytes();
  core::OrderDone done;
  done.session = session_;
  done.order = order.order;
  if (order.plan.absences.empty()) {
    steps_.EndPlan();
  } else if (!steps_.Follow(order.plan)) {
    done.error = "the step has changed";
  } else {
    plan_budget_ = order.plan.budget;
    for (const core::PlanOrder::Place& place : order.places) {
      plan_slots_[place.buffer + 1] = place.slot.id;
    }
  }
  Report();
  to_core_(std::move(done));
}

void SimClient::Plan(const steps::PlanMoves& moves) {
  const auto drop = [](uint32_t b, std::deque<uint32_t>* from) {
    from->erase(std::remove(from->begin(), from->end(), b), from->end());
  };
  for (uint32_t b : moves.restore) {
    drop(b, &to_evict_);
    to_restore_.push_back(b);
  }
  for (uint32_t b : moves.evict) {
    drop(b, &to_restore_);
    to_evict_.push_back(b);
  }
  PlannedEvictions();
  PlannedRestores();
}

void SimClient::PlannedEvictions() {
  while (plan_evicts_ < machine_.costs.moves && !to_evict_.empty()) {
    const uint32_t b = to_evict_.front();
    to_evict_.pop_front();
    Buffer& buffer = buffers_[b];
    if (buffer.phase != Phase::kResident || buffer.pinned || Wanted(b)) {
      continue;
    }
    const auto slot = plan_slots_.find(steps_.LogicalOf(b));
    if (slot == plan_slots_.end()) continue;
    ++plan_evicts_;
    buffer.by_plan = true;
    Leave(b, slot->second, [this, b](bool left) {
      --plan_evicts_;
      buffers_[b].by_plan = false;
      if (left) {
        idle_.Put(buffers_[b].chunks);
        buffers_[b].chunks.clear();
      }
      PlannedEvictions();
      Admit();
      PlannedRestores();
    });
  }
}

// Only into memory that the client has, and that no op waits for.
void SimClient::PlannedRestores() {
  while (plan_restores_ < machine_.costs.moves && !to_restore_.empty() &&
         !lacks_memory_) {
    const uint32_t b = to_restore_.front();
    Buffer& buffer = buffers_[b];
    if (buffer.phase == Phase::kSwapped) {
      Chunks chunks;
      if (!idle_.Take(buffer.size, &chunks)) return;
      ++plan_restores_;
      to_restore_.pop_front();
      Restore(b, std::move(chunks), [this] {
        --plan_restores_;
        PlannedRestores();
      });
    } else {
      to_restore_.pop_front();
    }
  }
}

}  // namespace mets::sim
