// Huge pages behind a memfd.
#ifndef METS_COMMON_DEVICE_HOST_HUGE_PAGES_H_
#define METS_COMMON_DEVICE_HOST_HUGE_PAGES_H_

#include "common/base/bytes.h"

namespace mets {

// Allocates the whole 2 MiB pieces of a new, empty memfd of `size` bytes as
// huge pages (MADV_COLLAPSE, which works whatever
// /sys/kernel/mm/transparent_hugepage/shmem_enabled says). Every process then
// maps the memory without page faults for single pages: mapping a fresh chunk
// for the first time costs a hundredth, and creation is no slower.
//
// Does what it can: on kernels before 6.1, or when no huge page is free, the
// rest of the file stays empty. Maps the file for the duration of the call.
void AllocateHugePages(int memfd, Bytes size);

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HUGE_PAGES_H_
