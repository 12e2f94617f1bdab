// One run of an op for METS: what it touches, what it allocates.
#ifndef METS_TF_ALLOCATOR_CORE_OP_SCOPE_H_
#define METS_TF_ALLOCATOR_CORE_OP_SCOPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/loader/mets_api.h"
#include "tf_allocator/core/device_memory.h"
#include "tf_allocator/core/kernel_table.h"

namespace mets {

// A list of accesses that needs no heap memory for ordinary ops. Not
// thread-safe.
class AccessList {
 public:
  void Add(const void* address, mets_access_kind kind, uint64_t bytes = 0) {
    const mets_access access = {address, bytes, kind};
    if (count_ < kInline) {
      inline_[count_++] = access;
      return;
    }
    if (count_ == kInline) more_.assign(inline_, inline_ + kInline);
    more_.push_back(access);
    ++count_;
  }
  void Clear() {
    count_ = 0;
    more_.clear();
  }
  const mets_access* data() const {
    return count_ <= kInline ? inline_ : more_.data();
  }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const mets_access& operator[](size_t i) const { return data()[i]; }

 private:
  static constexpr size_t kInline = 16;
  size_t count_ = 0;
  mets_access inline_[kInline];
  std::vector<mets_access> more_;
};

// An op while it runs. Enter() makes it the thread's current op, so that
// DeviceMemory's allocations are the op's; scopes nest. An op that names
// nothing begins for METS only when it allocates, so that small ops cost
// nothing. What an op has made and not given out as output is held from its end
// on, but for what those of lists make: that is in a list.
//
// Use of a synchronous op:
//     OpScope scope(&memory, state);
//     if (!scope.Begin(&accesses, signature, &error)) fail(error);
//     scope.Enter();  run the kernel  scope.Leave();
//     for each output: scope.NoteOutput(buffer)
//     scope.End();
//
// Thread-safety: one thread at a time; NoteOutput and End may come from another
// thread than the rest, after Leave. `memory` and `state` must outlive it.
class OpScope {
 public:
  // Asynchronous ops (`tracks` false) may free and allocate on other threads,
  // so their buffers start held.
  OpScope(DeviceMemory* memory, KernelState* state, bool tracks = true)
      : memory_(memory), state_(state), tracks_(tracks) {}
  ~OpScope() {
    if (op_ != nullptr) memory_->api().op_end(op_, memory_->stream());
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  static OpScope* Current() { return current_; }

  // Announces `accesses`, to which it adds what the kernel allocated in earlier
  // runs with this signature. A synchronous op that never ran with it says
  // that its need is unknown. May block. False with a text: the op must not
  // run. kStale: an address is no longer a buffer's; resolve again.
  enum class BeginResult { kOk, kStale, kFailed };
  BeginResult Begin(AccessList* accesses, uint64_t signature,
                    std::string* error);

  void Enter() {
    outer_ = current_;
    current_ = this;
  }
  void Leave() { current_ = outer_; }

  // The op's thread leaves an asynchronous op.
  void Detach() {
    if (op_ != nullptr) memory_->api().op_detach(op_);
  }

  const char* type() const { return state_->type.c_str(); }

  // True when the op has nothing to do with METS so far.
  bool idle() const { return !begun_ && allocations_ == 0; }
  bool allocated() const { return allocations_ > 0; }
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

  // True when the op allocated the buffer, which is now known to be an output.
  bool NoteOutput(const void* buffer);

  // Pins `buffer` as written although it was announced as read.
  void Upgrade(const void* buffer);

  // Learns, holds what the op allocated and keeps, and unpins.
  void End();

  // Called by DeviceMemory.
  bool BeginForAllocation(std::string* error);
  // Whether what is allocated next may move once the op has ended.
  bool LetsMove() const {
    return HasRoom() || (tracks_ && IsOfLists(state_->kind));
  }
  void NoteAllocated(void* address, uint64_t bytes);
  void NoteFreed(const void* address);
  void NoteFailure(const std::string& text) { failure_ = text; }

 private:
  bool HasRoom() const { return tracks_ && allocated_count_ < kAllocated; }
  // Asks METS to begin an op.
  mets_status BeginMetsOp(const mets_access* accesses, size_t count,
                          uint64_t expected, mets_op** op);

  static constexpr size_t kAllocated = 16;
  struct Allocated {
    void* address;  // null: freed
    uint64_t bytes;
    bool output;
  };

  static thread_local OpScope* current_
      __attribute__((tls_model("initial-exec")));

  DeviceMemory* const memory_;
  KernelState* const state_;
  const bool tracks_;
  bool begun_ = false;
  OpScope* outer_ = nullptr;
  mets_op* op_ = nullptr;
  uint64_t signature_ = 0;
  uint64_t allocations_ = 0;
  uint64_t live_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
  Need peak_;
  size_t allocated_count_ = 0;
  Allocated allocated_[kAllocated];
  std::string failure_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_OP_SCOPE_H_
