// The memory of one METS device as PyTorch's pluggable allocator uses it.
#ifndef METS_CLIENT_TORCH_TORCH_MEMORY_H_
#define METS_CLIENT_TORCH_TORCH_MEMORY_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/loader/mets_api.h"

namespace mets {

// One GPU, gated: PyTorch's accesses are not seen, so all buffers are held, and
// the program says between which points it computes (EnterGate, LeaveGate).
// Thread-safe. Lives until the process ends: tensors outlive everything.
//
// Streams are PyTorch's: nullptr is the legacy default stream.
class TorchMemory {
 public:
  // Connects to metsd and attaches the device `id`, which PyTorch calls
  // cuda:`index`. nullptr, with a status and a text, on failure. Blocks for at
  // most 10 s.
  static std::unique_ptr<TorchMemory> Open(const MetsApi& api, int index,
                                           const std::string& id,
                                           mets_status* status,
                                           std::string* error);

  // nullptr for no bytes. Blocks until there is memory or METS_WAIT has passed;
  // then, and for another device than this one, false with a text in `error`.
  [[nodiscard]] bool Allocate(size_t bytes, int index, void* stream,
                              void** address, std::string* error);
  void Free(void* address, void* stream);
  // The buffer is used on `stream` too: when it is freed, its memory is used
  // again only after the work that is on that stream then.
  void RecordStream(void* address, void* stream);

  int index() const { return index_; }
  mets_status EnterGate() { return api_.gate_enter(device_); }
  void LeaveGate() { api_.gate_leave(device_); }
  void StepHint() { api_.step_hint(device_); }
  mets_status Stats(mets_stats_t* stats) const {
    return api_.get_stats(device_, stats);
  }
  const char* last_error() const { return api_.last_error(); }

 private:
  TorchMemory(const MetsApi& api, int index, mets_device* device)
      : api_(api), index_(index), device_(device) {}
  void SayUsed(void* address, void* stream);
  std::vector<void*> TakeRecorded(void* address);

  const MetsApi api_;
  const int index_;
  mets_device* const device_;
  std::mutex mutex_;
  std::unordered_map<void*, std::vector<void*>> recorded_;  // By buffer.
};

}  // namespace mets

#endif  // METS_CLIENT_TORCH_TORCH_MEMORY_H_
