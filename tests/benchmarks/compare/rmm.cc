// RMM's pool over cudaMalloc, from librmm's wheel. All calls are on one stream,
// the legacy default stream.
#include <cuda_runtime_api.h>

#include <optional>
#include <rmm/aligned.hpp>
#include <rmm/error.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include "tests/benchmarks/compare/replay.h"

namespace mets::compare {
namespace {

class Rmm : public Allocator {
 public:
  // A pool of a given size is one block of cudaMalloc; else it grows, to twice
  // its size each time.
  explicit Rmm(int64_t pool_bytes)
      : pool_(rmm::mr::cuda_memory_resource(), pool_bytes,
              pool_bytes == 0 ? std::nullopt
                              : std::make_optional<size_t>(pool_bytes)) {}

  void* Allocate(size_t bytes) override {
    try {
      return pool_.allocate(kStream, bytes, rmm::CUDA_ALLOCATION_ALIGNMENT);
    } catch (const rmm::out_of_memory&) {
      return nullptr;
    }
  }
  void Free(void* address, size_t bytes) override {
    pool_.deallocate(kStream, address, bytes, rmm::CUDA_ALLOCATION_ALIGNMENT);
  }
  int64_t held_bytes() override { return pool_.pool_size(); }

 private:
  const cuda::stream_ref kStream{cudaStreamLegacy};
  rmm::mr::pool_memory_resource pool_;
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main<mets::compare::Rmm>(argc, argv);
}
