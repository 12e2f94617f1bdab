// Op: what runs between mets_op_begin and mets_op_end.
#ifndef METS_CLIENT_SRC_OP_H_
#define METS_CLIENT_SRC_OP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/src/buffer.h"
#include "client/src/chunk_store.h"
#include "client/src/step_watch.h"

namespace mets::client {

class Device;

// Chunks set aside for one range.
struct ReservedChunks {
  Bytes range;
  ChunkSet chunks;
};

// An op's pins and reservation. Used by one thread at a time; recycled, never
// deleted, so that a stale pointer is harmless (`serial` tells).
struct Op {
  static constexpr size_t kInlinePins = 16;
  struct Pin {
    Buffer* buffer;
    bool allocated;  // By the op itself.
  };

  Device* device = nullptr;
  uint64_t serial = 0;
  const uint64_t id = NextId();
  // Whose overdraft tokens it takes: its own id or, begun inside another op of
  // its thread, that one's number.
  uint64_t number = 0;
  bool reserved = false;  // It has, or had, a reservation.
  bool counted = false;   // It has entered the gate.
  bool section = false;   // It is a mets_gate_enter.
  Stream stream;          // The one it begins on.

  size_t pin_count = 0;
  Pin inline_pins[kInlinePins];
  std::vector<Pin> more_pins;

  std::vector<Buffer*> ranges;         // Reserved, mapped.
  std::vector<ReservedChunks> chunks;  // Reserved, not mapped.
  int tokens = 0;                      // Overdraft grants to give back.
  uint64_t token_generation = 0;

  uint64_t allocated_bytes = 0;
  uint64_t largest_bytes = 0;
  size_t allocated_count = 0;

  StepWatch::Op step;
  std::string name;  // Kept where there are phantom evictions.

  uint64_t recorded = 0;  // Number in the recording; 0: not recorded.

  Op* next_free = nullptr;

  // Whether what it allocates is pinned until its end. What is held stays for a
  // section anyway, and may be freed by another thread before that ends.
  bool PinsNew(Mobility mobility) const {
    return !section || mobility == Mobility::kMovable;
  }
  void AddPin(Buffer* buffer, bool allocated) {
    if (pin_count < kInlinePins) {
      inline_pins[pin_count] = {buffer, allocated};
    } else {
      more_pins.push_back({buffer, allocated});
    }
    ++pin_count;
  }
  Pin& pin(size_t i) {
    return i < kInlinePins ? inline_pins[i] : more_pins[i - kInlinePins];
  }
  void AddToken(uint64_t generation) {
    tokens = generation == token_generation ? tokens + 1 : 1;
    token_generation = generation;
  }
  static uint64_t NextId();  // From 1.
  // Forgets one pin that the op got by allocating `buffer`; the caller unpins.
  // False when it has none.
  bool DropAllocated(Buffer* buffer);
  void ClearPins() {
    pin_count = 0;
    if (!more_pins.empty()) more_pins.clear();
  }
};

// A new op, from the thread's free list.
Op* NewOp(Device* device);
// REQUIRES: it has neither pins nor a reservation.
void RecycleOp(Op* op);

// Names the next op that this thread begins; the string is borrowed until then.
// Null: none.
void SetNextOpName(const char* name);
const char* TakeNextOpName();

// The thread's stack of ops: the innermost one that still runs, or null.
Op* CurrentOp();
void PushCurrentOp(Op* op);
// Removes it, wherever it stands; nothing when this thread has not got it.
void RemoveCurrentOp(const Op* op);

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_OP_H_
