#include "common/device/host/host_chunk.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/device/host/populate.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace mets {
namespace {

bool MovePageTables(char* from, size_t size, char* to) {
  return mremap(from, size, size,
                MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                to) != MAP_FAILED;
}

bool ProbeMove() {
  constexpr size_t kSize = 4096;
  UniqueFd fd(memfd_create("mets-probe", MFD_CLOEXEC));
  if (!fd.ok() || ftruncate(fd.get(), kSize) != 0) return false;
  void* both =
      mmap(nullptr, 2 * kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (both == MAP_FAILED) return false;
  char* first = static_cast<char*>(both);
  const bool mapped = mmap(first, kSize, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, fd.get(), 0) != MAP_FAILED;
  const bool moved = mapped && MovePageTables(first, kSize, first + kSize);
  munmap(both, 2 * kSize);
  return moved;
}

}  // namespace

HostChunk::Method HostChunk::BestMethod() {
  return ProbeMove() ? Method::kMove : Method::kDuplicate;
}

absl::StatusOr<std::unique_ptr<HostChunk>> HostChunk::Import(
    AddressRegion& aliases, UniqueFd fd, Bytes size, Method method) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "import chunk");
  if (info.st_size != size.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("import chunk: ", info.st_size, " bytes where ",
                     size.count(), " were announced"));
  }
  METS_ASSIGN_OR_RETURN(char* alias, aliases.Allocate(size));
  auto chunk = absl::WrapUnique(new HostChunk(aliases, size, alias, method));
  if (mmap(alias, size.count(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           fd.get(), 0) == MAP_FAILED) {
    return ErrnoToStatus(errno,
                         absl::StrCat("map a chunk of ", FormatBytes(size)));
  }
  if (madvise(alias, size.count(), MADV_DONTFORK) != 0) {
    return ErrnoToStatus(errno, "MADV_DONTFORK");
  }
  return chunk;
}

HostChunk::~HostChunk() {
  METS_CHECK_OK(aliases_.Clear(alias_, size_));
  aliases_.Free(alias_, size_);
}

absl::Status HostChunk::Populate() {
  if (populated_.load(std::memory_order_acquire)) return absl::OkStatus();
  METS_RETURN_IF_ERROR(PopulatePageTables(alias_, size_.count()));
  populated_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status HostChunk::MoveTo(char* address) {
  const size_t size = size_.count();
  // An old size of 0 duplicates a shared mapping.
  const bool done = method_ == Method::kMove
                        ? MovePageTables(alias_, size, address)
                        : mremap(alias_, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                                 address) != MAP_FAILED;
  if (done) return absl::OkStatus();
  return ErrnoToStatus(errno,
                       absl::StrCat("map a chunk of ", FormatBytes(size_)));
}

absl::Status HostChunk::MoveBack(char* address) {
  if (method_ == Method::kDuplicate ||
      MovePageTables(address, size_.count(), alias_)) {
    return absl::OkStatus();
  }
  return ErrnoToStatus(errno,
                       absl::StrCat("unmap a chunk of ", FormatBytes(size_)));
}

}  // namespace mets
