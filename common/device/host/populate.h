// Filling page tables ahead of use.
#ifndef METS_COMMON_DEVICE_HOST_POPULATE_H_
#define METS_COMMON_DEVICE_HOST_POPULATE_H_

#include <errno.h>
#include <sys/mman.h>

#include <cstddef>

#include "absl/status/status.h"
#include "common/base/errno_status.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace mets {

// Makes [address, address + size), a shared and writable mapping of a memfd,
// readable and writable without page faults. Does nothing on kernels that
// cannot (before 5.14). (A memfd's pages are mapped writable by a read, too,
// and many at a time, which MADV_POPULATE_WRITE does not do.)
inline absl::Status PopulatePageTables(char* address, size_t size) {
  int result;
  do {
    result = madvise(address, size, MADV_POPULATE_READ);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0 || errno == EINVAL) return absl::OkStatus();
  return ErrnoToStatus(errno, "fill page tables");
}

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_POPULATE_H_
