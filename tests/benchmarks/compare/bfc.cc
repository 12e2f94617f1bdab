// TensorFlow's allocator for GPUs (BFC), from its wheel, on reserved addresses.
#include <sys/mman.h>

#include "tests/benchmarks/compare/replay.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace mets::compare {
namespace {

// Memory that nobody touches takes no room.
class Reserved : public tsl::SubAllocator {
 public:
  Reserved() : SubAllocator({}, {}) {}

  void* Alloc(size_t, size_t bytes, size_t* received) override {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return nullptr;
    *received = bytes;
    return address;
  }
  void Free(void* address, size_t bytes) override { munmap(address, bytes); }
  bool SupportsCoalescing() const override { return false; }
};

class Bfc : public Allocator {
 public:
  // A pool of a given size is one region; else it grows, which shows what is
  // held.
  explicit Bfc(int64_t pool_bytes)
      : bfc_(std::make_unique<Reserved>(),
             pool_bytes == 0 ? size_t{1} << 40 : pool_bytes, "compare",
             {.allow_growth = pool_bytes == 0,
              .allow_retry_on_failure = false}) {}

  void* Allocate(size_t bytes) override {
    return bfc_.AllocateRaw(64, bytes, kNoRetry);
  }
  void Free(void* address, size_t) override { bfc_.DeallocateRaw(address); }
  int64_t held_bytes() override {
    return bfc_.GetStats()->pool_bytes.value_or(0);
  }

 private:
  const tsl::AllocationAttributes kNoRetry{false, false, nullptr};
  tsl::BFCAllocator bfc_;
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main<mets::compare::Bfc>(argc, argv);
}
