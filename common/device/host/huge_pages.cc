#include "common/device/host/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace mets {
namespace {

constexpr Bytes kHugePage = MiB(2);

// One page must be there to be collapsed. Writing it with pwrite instead of
// touching it makes a lack of memory an error, not a signal.
bool AllocateOne(int memfd, int64_t offset, char* address) {
  return pwrite(memfd, "", 1, offset) == 1 &&
         madvise(address, kHugePage.count(), MADV_COLLAPSE) == 0;
}

}  // namespace

void AllocateHugePages(int memfd, Bytes size) {
  const int64_t whole = size / kHugePage * kHugePage.count();
  if (whole == 0) return;
  const int64_t reserved = whole + kHugePage.count();
  void* base = mmap(nullptr, reserved, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return;
  const uint64_t address = reinterpret_cast<uint64_t>(base);
  const uint64_t misaligned = address % kHugePage.count();
  char* aligned = static_cast<char*>(base) +
                  (misaligned == 0 ? 0 : kHugePage.count() - misaligned);
  if (mmap(aligned, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           memfd, 0) != MAP_FAILED) {
    int64_t offset = 0;
    while (offset < whole && AllocateOne(memfd, offset, aligned + offset)) {
      offset += kHugePage.count();
    }
  }
  munmap(base, reserved);
}

}  // namespace mets
