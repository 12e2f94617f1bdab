#include "client/src/op.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace mets::client {
namespace {

constexpr size_t kDepth = 8;
constexpr size_t kKeptPerThread = 32;

struct StackEntry {
  Op* op;
  uint64_t serial;
};

// Plain data, so that the library's thread-local storage is small and static.
struct ThreadOps {
  size_t depth;  // Ops nested deeper than kDepth are not tracked.
  StackEntry stack[kDepth];
  Op* free;
  size_t free_count;
  const char* next_name;
};
__attribute__((tls_model("initial-exec"))) thread_local ThreadOps tls = {
    0, {}, nullptr, 0, nullptr};

// Ops of threads that have ended, or have too many.
std::mutex shared_mutex;
Op* shared_free = nullptr;
pthread_key_t key;
std::once_flag key_once;

void PutShared(Op* first) {
  if (first == nullptr) return;
  Op* last = first;
  while (last->next_free != nullptr) last = last->next_free;
  std::lock_guard<std::mutex> lock(shared_mutex);
  last->next_free = shared_free;
  shared_free = first;
}

void ThreadEnds(void*) {
  PutShared(tls.free);
  tls.free = nullptr;
  tls.free_count = 0;
}

Op* Refill() {
  std::call_once(key_once, [] { pthread_key_create(&key, ThreadEnds); });
  pthread_setspecific(key, &tls);
  {
    std::lock_guard<std::mutex> lock(shared_mutex);
    if (shared_free != nullptr) {
      Op* op = shared_free;
      shared_free = op->next_free;
      return op;
    }
  }
  return new Op;
}

}  // namespace

uint64_t Op::NextId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

bool Op::DropAllocated(Buffer* buffer) {
  for (size_t i = pin_count; i > 0; --i) {
    Pin& found = pin(i - 1);
    if (found.buffer != buffer || !found.allocated) continue;
    found = pin(pin_count - 1);
    --pin_count;
    if (!more_pins.empty()) more_pins.pop_back();
    return true;
  }
  return false;
}

Op* NewOp(Device* device) {
  Op* op = tls.free;
  if (op != nullptr) {
    tls.free = op->next_free;
    --tls.free_count;
  } else {
    op = Refill();
  }
  const Op* outer = CurrentOp();
  op->number = outer != nullptr ? outer->number : op->id;
  op->device = device;
  op->reserved = op->counted = op->section = false;
  op->stream = Stream();
  op->recorded = 0;
  op->name.clear();
  op->step.Reset();
  op->tokens = 0;
  op->allocated_bytes = op->largest_bytes = op->allocated_count = 0;
  op->next_free = nullptr;
  return op;
}

void RecycleOp(Op* op) {
  ++op->serial;
  if (tls.free_count >= kKeptPerThread) {
    op->next_free = nullptr;
    PutShared(op);
    return;
  }
  op->next_free = tls.free;
  tls.free = op;
  ++tls.free_count;
}

void SetNextOpName(const char* name) { tls.next_name = name; }

const char* TakeNextOpName() { return std::exchange(tls.next_name, nullptr); }

Op* CurrentOp() {
  while (tls.depth > 0 && tls.depth <= kDepth) {
    const StackEntry& top = tls.stack[tls.depth - 1];
    if (top.op->serial == top.serial) return top.op;
    --tls.depth;  // Ended by another thread.
  }
  return nullptr;
}

void PushCurrentOp(Op* op) {
  if (tls.depth < kDepth) {
    tls.stack[tls.depth] = {op, op->serial};
    ++tls.depth;
  } else if (CurrentOp() == nullptr) {
    PushCurrentOp(op);
  }
}

void RemoveCurrentOp(const Op* op) {
  for (size_t i = tls.depth; i > 0; --i) {
    if (tls.stack[i - 1].op != op) continue;
    for (size_t k = i; k < tls.depth; ++k) tls.stack[k - 1] = tls.stack[k];
    --tls.depth;
    return;
  }
}

}  // namespace mets::client
