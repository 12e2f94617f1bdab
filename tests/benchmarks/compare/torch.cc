// PyTorch's caching allocator for CUDA. All calls are on one stream, the
// default stream of the threads. Needs the libraries of a PyTorch for CUDA:
// README.md says how it is compiled.
#include <c10/cuda/CUDACachingAllocator.h>

#include "tests/benchmarks/compare/replay.h"

// Else one of PyTorch's larger libraries, which are not loaded here, sets it;
// no header of PyTorch declares it.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(DeviceIndex));
}

namespace mets::compare {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

class Torch : public Allocator {
 public:
  explicit Torch(int64_t pool_bytes) {
    c10::cuda::_internal::setHasPrimaryContext(
        [](c10::DeviceIndex) { return true; });
    caching::init(1);
    const double all = caching::get()->getMemoryInfo(0).second;
    const double part = (pool_bytes + 0.5) / all;  // It is rounded down.
    caching::setMemoryFraction(pool_bytes == 0 ? 1 : part, 0);
  }
  ~Torch() override { caching::emptyCache(); }

  void* Allocate(size_t bytes) override {
    try {
      return caching::raw_alloc(bytes);
    } catch (const c10::OutOfMemoryError&) {
      return nullptr;
    }
  }
  void Free(void* address, size_t) override { caching::raw_delete(address); }
  int64_t held_bytes() override {
    const auto all =
        static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return caching::getDeviceStats(0).reserved_bytes[all].current;
  }
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main<mets::compare::Torch>(argc, argv);
}
