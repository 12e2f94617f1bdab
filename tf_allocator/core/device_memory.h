// The memory of one METS device as a framework's allocator uses it.
#ifndef METS_TF_ALLOCATOR_CORE_DEVICE_MEMORY_H_
#define METS_TF_ALLOCATOR_CORE_DEVICE_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "client/loader/mets_api.h"
#include "tf_allocator/core/held_buffers.h"

namespace mets {

// Large allocations, who may move, and the process's session. Thread-safe.
// Lives until the process ends: buffers outlive every device object.
//
// Mobility. What is allocated inside an op is movable; OpScope holds what turns
// out not to be the op's output. What is allocated elsewhere is held. Both
// kinds of held buffers become movable when an op names them (MakeMovable).
// What something keeps (HoldWhileKept) becomes so when an op names it that
// nothing else refers to (NotKept); HoldForGood holds until it is freed, and
// HoldAll all. With METS_TF_SHOW_HELD=1 stderr gets a line for each reason for
// which a large buffer is held.
//
// fork. After ForkedChild() nothing of METS is used: Allocate returns kNotHere.
class DeviceMemory {
 public:
  enum class Result { kOk, kNotHere, kFailed };

  // Connects and attaches a device: `id`, or where that is null the daemon's
  // first, which must be of `kind` ("host", "cuda"). Null with a text in
  // `error` on failure. May block for some seconds.
  static std::unique_ptr<DeviceMemory> Open(const MetsApi& api, const char* id,
                                            const char* kind,
                                            std::string* error);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // On GPUs, the stream that runs the ops: what is allocated is used first in
  // its order, and what is freed may be used until then in its order. Null, and
  // before it has been set: host order.
  mets_stream stream() const { return stream_.load(std::memory_order_relaxed); }
  void SetStream(mets_stream stream) { stream_.store(stream); }

  // Allocations of at least this many bytes are buffers of their own.
  uint64_t threshold_bytes() const { return threshold_bytes_; }
  const char* device_id() const { return device_id_.c_str(); }

  // Allocates, inside the current op of the thread when there is one. `align`:
  // a power of two, 0 for libmets' own. May block. kNotHere: the caller should
  // use other memory. kFailed: the text is in `error`, and was written to
  // stderr once. Not `needed`: the caller can do without, so that it waits for
  // a moment only, and nobody hears of its failure.
  Result Allocate(uint64_t bytes, uint64_t align, void** address,
                  std::string* error, bool needed = true);

  // REQUIRES: Owns(address). Nothing happens in a forked child.
  void Free(void* address);

  // Whether the address lies in a buffer of this device.
  bool Owns(const void* address) const {
    const uintptr_t a = reinterpret_cast<uintptr_t>(address);
    return a >= lowest_.load(std::memory_order_relaxed) &&
           a < highest_.load(std::memory_order_relaxed) &&
           api_.owns(device_, address) != 0;
  }

  // The buffer at `address` (as allocated) is named by an op of `step`: makes
  // it movable if it was only waiting for that. While a collective op runs,
  // nothing: its kernels name what it still uses.
  void MakeMovable(void* address, int64_t step) {
    if (collectives_.load(std::memory_order_relaxed) != 0) return;
    held_.Named(address, step, [&] { Release(address); });
  }

  // The same for what is held while it is kept: `owner` counts the references
  // to it, and `alone()` says whether nothing else has one.
  template <typename Alone>
  void NotKept(void* address, const void* owner, const Alone& alone) {
    held_.NotKept(address, owner, alone, [&] { Release(address); });
  }

  void CollectiveBegins() { ++collectives_; }
  void CollectiveEnds() { --collectives_; }

  // Why a buffer is held: the type of the op, and what it did.
  struct Reason {
    const char* op;
    const char* why;
  };
  // Holds the buffer at `address` until an op, of another step, names it; while
  // something keeps it, which may use it without an op, by a reference that
  // `owner` counts; for good. Inside a buffer only the last is possible, and is
  // what all do. They may block, to bring it back. False: that was not
  // possible, and api().last_error() says why.
  bool HoldUntilNamed(void* address, const Reason& reason,
                      int64_t step = HeldBuffers::kNoStep);
  bool HoldWhileKept(void* address, const void* owner, const Reason& reason);
  bool HoldForGood(void* address, const Reason& reason);
  // Holds all that is allocated from now on.
  void HoldAll() { hold_all_.store(true, std::memory_order_relaxed); }

  const MetsApi& api() const { return api_; }
  mets_device* device() const { return device_; }
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  void ForkedChild() { forked_.store(true, std::memory_order_relaxed); }

  // As the program says; nothing happens in a forked child.
  void StepBegins() {
    if (!forked()) api_.step_hint(device_);
  }

  // False after a fork or a failure of libmets.
  bool Stats(mets_stats_t* stats) const;
  void ResetPeak() { api_.reset_peak(device_); }
  // What this process can have at most: its own limit, else the job's, else the
  // pool.
  uint64_t limit_bytes() const {
    return own_limit_bytes_ != 0 ? own_limit_bytes_ : limit_bytes_;
  }
  // A limit that the program has set itself; 0: none.
  uint64_t own_limit_bytes() const { return own_limit_bytes_; }
  // REQUIRES: nothing is allocated.
  void SetOwnLimit(uint64_t bytes) { own_limit_bytes_ = bytes; }
  uint64_t largest_allocation_bytes() const {
    return largest_.load(std::memory_order_relaxed);
  }

 private:
  DeviceMemory(const MetsApi& api, mets_device* device,
               const mets_device_info& info);
  bool holds_all() const { return hold_all_.load(std::memory_order_relaxed); }
  // Whether the program's own limit leaves room, which is then taken.
  bool TakeRoom(uint64_t bytes, std::string* error);
  void LeaveRoom(uint64_t bytes);
  uint64_t BytesAt(const void* address) const;
  void Release(void* address) {
    if (!holds_all()) api_.set_mobility(device_, address, METS_MOVABLE);
  }
  bool Hold(void* address, const Reason& reason);
  Result Fail(const std::string& error, bool needed);
  void Remember(const void* address, uint64_t bytes);
  void SayOnce(const std::string& text);
  void ShowHeld(const void* address, const Reason& reason);

  const MetsApi api_;
  mets_device* const device_;
  const std::string device_id_;
  const uint64_t threshold_bytes_;
  const uint64_t limit_bytes_;
  uint64_t own_limit_bytes_ = 0;
  std::atomic<uint64_t> used_bytes_{0};  // Where there is a limit of its own.
  std::atomic<mets_stream> stream_{nullptr};
  std::atomic<bool> forked_{false};
  std::atomic<bool> said_{false};
  std::atomic<bool> hold_all_{false};
  std::atomic<int> collectives_{0};  // That are running.
  const bool shows_held_;
  std::mutex shown_mutex_;
  std::set<std::string> shown_;
  // All addresses ever given out lie in [lowest_, highest_).
  std::atomic<uintptr_t> lowest_{UINTPTR_MAX};
  std::atomic<uintptr_t> highest_{0};
  std::atomic<uint64_t> largest_{0};
  HeldBuffers held_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_DEVICE_MEMORY_H_
