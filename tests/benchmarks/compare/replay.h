// Recorded allocations and frees, replayed on an allocator as fast as it goes.
#ifndef METS_TESTS_BENCHMARKS_COMPARE_REPLAY_H_
#define METS_TESTS_BENCHMARKS_COMPARE_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mets::compare {

// What is compared. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Memory aligned to 64 bytes, or null when there is no room.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* address, size_t bytes) = 0;
  // What it has from the system or from its pool at the moment, in use or not.
  virtual int64_t held_bytes() = 0;
};

// Makes the allocator of the program; with `pool_bytes` 0 it has room for
// everything.
using Factory = std::unique_ptr<Allocator> (*)(int64_t pool_bytes);

// A whole main(): README.md says what the program takes and tells.
int Main(int argc, char** argv, Factory factory);

// The same for a class that is made of `pool_bytes`.
template <typename Compared>
int Main(int argc, char** argv) {
  return Main(argc, argv, [](int64_t pool_bytes) -> std::unique_ptr<Allocator> {
    return std::make_unique<Compared>(pool_bytes);
  });
}

}  // namespace mets::compare

#endif  // METS_TESTS_BENCHMARKS_COMPARE_REPLAY_H_
