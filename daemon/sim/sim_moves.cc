// How a SimClient's buffers move.
#include <algorithm>
#include <utility>

#include "daemon/sim/sim_client.h"

namespace mets::sim {

void SimClient::Restore(uint32_t b, Chunks chunks) {
  Buffer& buffer = buffers_[b];
  buffer.phase = Phase::kReturning;
  const uint64_t copy = ++last_copy_;
  buffer.copy = copy;
  result_.restored += program_.buffers[b];
  world_.After(machine_.costs.map, [this, b, copy, chunks] {
    machine_.in.Copy(program_.buffers[b], [this, b, copy, chunks] {
      Buffer& done = buffers_[b];
      if (done.copy != copy) {  // Freed meanwhile.
        idle_.Put(chunks);
        Admit();
        return;
      }
      done.phase = Phase::kResident;
      done.chunks = chunks;
      done.dirty = false;
      done.copy = 0;
      Change(b);
      Admit();
    });
  });
}

void SimClient::Leave(uint32_t b, SlotId slot, std::function<void(bool)> done) {
  Buffer& buffer = buffers_[b];
  buffer.phase = Phase::kLeaving;
  const uint64_t copy = ++last_copy_;
  buffer.copy = copy;
  const auto end = [this, b, copy, slot, done] {
    Buffer& left = buffers_[b];
    if (left.copy != copy) {  // An op needs it, or it is freed.
      done(false);
      return;
    }
    left.phase = Phase::kSwapped;
    left.slot = slot;
    left.copy = 0;
    Change(b);
    done(true);
  };
  if (!buffer.dirty) {
    world_.After(machine_.costs.map, end);
    return;
  }
  result_.evicted += program_.buffers[b];
  machine_.out.Copy(program_.buffers[b],
                    [this, end] { world_.After(machine_.costs.map, end); });
}

}  // namespace mets::sim
