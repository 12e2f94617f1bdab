// How a SimClient's buffers move.
#include <algorithm>
#include <utility>

#include "daemon/sim/sim_client.h"

namespace mets::sim {

void SimClient::Restore(uint32_t b, Chunks chunks, std::function<void()> done) {
  Buffer& buffer = buffers_[b];
  buffer.phase = Phase::kReturning;
  const uint64_t copy = ++last_copy_;
  buffer.copy = copy;
  const auto end = [this, b, copy, chunks, done] {
    Buffer& back = buffers_[b];
    result_.restored += program_.buffers[b];
    if (back.copy == copy) {
      back.phase = Phase::kResident;
      back.chunks = chunks;
      back.dirty = false;
      back.last_use = world_.now();  // It is about to be used.
      back.copy = 0;
      Change(b);
    } else {  // Freed meanwhile.
      idle_.Put(chunks);
    }
    Admit();
    if (done) done();
  };
  world_.After(machine_.costs.map, [this, b, end] {
    machine_.in.Copy(session_, program_.buffers[b], end);
  });
}

void SimClient::Leave(uint32_t b, SlotId slot, std::function<void(bool)> done) {
  Buffer& buffer = buffers_[b];
  buffer.phase = Phase::kLeaving;
  const uint64_t copy = ++last_copy_;
  buffer.copy = copy;
  const bool clean = !buffer.dirty && buffer.slot == slot;
  const auto end = [this, b, copy, slot, clean, done] {
    Buffer& left = buffers_[b];
    if (left.copy != copy) {  // An op needs it, or it is freed.
      done(false);
      return;
    }
    left.phase = Phase::kSwapped;
    left.slot = slot;
    left.copy = 0;
    if (!clean) result_.evicted += program_.buffers[b];
    Change(b);
    done(true);
  };
  if (clean) {
    world_.After(machine_.costs.map, end);
    return;
  }
  machine_.out.Copy(session_, program_.buffers[b],
                    [this, end] { world_.After(machine_.costs.map, end); });
}

}  // namespace mets::sim
