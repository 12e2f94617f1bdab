#include "daemon/core/steps/plan_slots.h"

namespace mets::core {
namespace {

// Nothing lies in the slot any more.
void Vacate(State& state, PlanBook& book, SlotId id) {
  PlannedSlot& slot = book.slots.at(id);
  slot.buffer = BufferId();
  // An earlier plan may be followed until the last one has been answered.
  if (slot.plan != book.order && book.answered == book.order) {
    state.swap.Free(id);
    book.slots.erase(id);
    return;
  }
  state.swap.SetBuffer(id, BufferId());
  state.swap.SetState(id, SlotState::kOrdered);
}

}  // namespace

void SetPlanned(State& state, Holding& holding, Buffer& buffer, SlotId id) {
  PlanBook& book = holding.plan;
  auto slot = book.slots.find(id);
  if (slot == book.slots.end()) id = SlotId();
  if (buffer.planned == id) return;
  const SlotId before = std::exchange(buffer.planned, id);
  if (before.ok()) Vacate(state, book, before);
  if (!id.ok()) return;
  if (slot->second.buffer.ok()) {  // It has left; its report follows.
    holding.buffers.Find(slot->second.buffer)->planned = SlotId();
  }
  slot->second.buffer = buffer.id;
  state.swap.SetBuffer(id, buffer.id);
  state.swap.SetState(id, SlotState::kFull);
}

void FreeUnusedSlots(State& state, Holding& holding, OrderId plan) {
  auto& slots = holding.plan.slots;
  for (auto it = slots.begin(); it != slots.end();) {
    if (it->second.plan == plan || it->second.buffer.ok()) {
      ++it;
      continue;
    }
    state.swap.Free(it->first);
    it = slots.erase(it);
  }
}

}  // namespace mets::core
