#include "tf_allocator/core/kernel_table.h"

#include <utility>

namespace mets {
namespace {
constexpr size_t kFirstCapacity = 4096;
}  // namespace

KernelNeeds* KernelState::needs() {
  KernelNeeds* needs = needs_.load(std::memory_order_acquire);
  if (needs != nullptr) return needs;
  auto fresh = std::make_unique<KernelNeeds>();
  if (needs_.compare_exchange_strong(needs, fresh.get(),
                                     std::memory_order_acq_rel)) {
    return fresh.release();
  }
  return needs;
}

KernelTable::KernelTable() {
  tables_.push_back(std::make_unique<Slots>(kFirstCapacity));
  slots_.store(tables_.back().get(), std::memory_order_release);
}

KernelTable::~KernelTable() = default;

size_t KernelTable::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

void KernelTable::Insert(KernelState* state, Slots* table) {
  for (size_t i = Hash(state->kernel);; ++i) {
    std::atomic<KernelState*>& slot = table->slots[i & table->mask];
    KernelState* there = slot.load(std::memory_order_relaxed);
    if (there != nullptr && there->kernel != state->kernel) continue;
    slot.store(state, std::memory_order_release);
    return;
  }
}

void KernelTable::Grow() {
  const Slots& old = *tables_.back();
  auto table = std::make_unique<Slots>(2 * (old.mask + 1));
  for (const std::atomic<KernelState*>& slot : old.slots) {
    KernelState* state = slot.load(std::memory_order_relaxed);
    if (state != nullptr) Insert(state, table.get());
  }
  tables_.push_back(std::move(table));
  slots_.store(tables_.back().get(), std::memory_order_release);
}

KernelState* KernelTable::Add(std::unique_ptr<KernelState> state) {
  std::lock_guard<std::mutex> lock(mutex_);
  KernelState* there = Find(state->kernel);
  if (there != nullptr && there->identity == state->identity) return there;
  if (there == nullptr) {
    ++used_;
    if (2 * used_ > tables_.back()->mask) Grow();
  }
  KernelState* added = state.get();
  states_.push_back(std::move(state));
  Insert(added, tables_.back().get());
  return added;
}

}  // namespace mets
