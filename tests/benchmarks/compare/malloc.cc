// glibc's malloc, as TensorFlow calls it for tensors on a processor.
#include <malloc.h>

#include <cstdlib>

#include "tests/benchmarks/compare/replay.h"

namespace mets::compare {
namespace {

class Malloc : public Allocator {
 public:
  explicit Malloc(int64_t) {}
  void* Allocate(size_t bytes) override {
    void* address = nullptr;
    return posix_memalign(&address, 64, bytes) == 0 ? address : nullptr;
  }
  void Free(void* address, size_t) override { free(address); }
  int64_t held_bytes() override {
    const struct mallinfo2 info = mallinfo2();
    return info.arena + info.hblkhd;
  }
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main<mets::compare::Malloc>(argc, argv);
}
