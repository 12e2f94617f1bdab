// What the plug-in knows of each kernel, found by the kernel's address.
#ifndef METS_TF_ALLOCATOR_CORE_KERNEL_TABLE_H_
#define METS_TF_ALLOCATOR_CORE_KERNEL_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tf_allocator/core/kernel_needs.h"
#include "tf_allocator/core/op_kind.h"

namespace mets {

// One kernel. `needs` is thread-safe; the rest does not change. One cache line:
// every op of a step reads it, and there are more of them than a cache holds.
class alignas(64) KernelState {
 public:
  // `type`: the op's type, such as "MatMul".
  KernelState(const void* kernel, uint64_t identity, OpKind kind,
              VariableUse variables, std::string type)
      : kernel(kernel),
        identity(identity),
        kind(kind),
        variables(variables),
        type(std::move(type)) {}

  const void* const kernel;
  const uint64_t identity;
  const OpKind kind;
  const VariableUse variables;
  const std::string type;

  // Created by the first call.
  KernelNeeds* needs();
  // Whether any run has allocated large buffers. Wait-free.
  bool allocates() const {
    const KernelNeeds* needs = needs_.load(std::memory_order_acquire);
    return needs != nullptr && needs->allocates();
  }
  ~KernelState() { delete needs_.load(); }

 private:
  std::atomic<KernelNeeds*> needs_{nullptr};
};
static_assert(sizeof(KernelState) == 64);

// An open-addressing hash table. Thread-safe: finding is wait-free, adding
// takes a lock. States live as long as the table, so a pointer stays valid. A
// kernel that was destroyed leaves its state until another kernel gets its
// address; `identity` (which must differ when what the state says would differ)
// tells the two apart.
class KernelTable {
 public:
  KernelTable();
  ~KernelTable();
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  // The kernel's state; when it has none yet, `make` is called and gives one
  // (std::unique_ptr<KernelState>), perhaps for nothing.
  template <typename Make>
  KernelState* Get(const void* kernel, uint64_t identity, Make&& make) {
    KernelState* state = Find(kernel);
    if (state != nullptr && state->identity == identity) return state;
    return Add(make());
  }

  size_t size() const;

 private:
  struct Slots {
    explicit Slots(size_t capacity) : mask(capacity - 1), slots(capacity) {}
    const size_t mask;
    std::vector<std::atomic<KernelState*>> slots;
  };

  static size_t Hash(const void* kernel) {
    const uint64_t address = reinterpret_cast<uintptr_t>(kernel) >> 4;
    return (address * 0x9E3779B97F4A7C15u) >> 20;
  }

  KernelState* Find(const void* kernel) const {
    const Slots& table = *slots_.load(std::memory_order_acquire);
    for (size_t i = Hash(kernel);; ++i) {
      KernelState* state =
          table.slots[i & table.mask].load(std::memory_order_acquire);
      if (state == nullptr || state->kernel == kernel) return state;
    }
  }

  KernelState* Add(std::unique_ptr<KernelState> state);
  static void Insert(KernelState* state, Slots* table);
  void Grow();

  std::atomic<Slots*> slots_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  std::vector<std::unique_ptr<Slots>> tables_;  // old ones may be in use
  std::vector<std::unique_ptr<KernelState>> states_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_KERNEL_TABLE_H_
