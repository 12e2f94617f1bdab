// FirstDescriptor: what a connection's first descriptor message brings.
#ifndef METS_TESTS_CLIENT_FIRST_DESCRIPTOR_H_
#define METS_TESTS_CLIENT_FIRST_DESCRIPTOR_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "common/base/check.h"
#include "common/ipc/descriptor_channel.h"

namespace mets::client {

// One descriptor, of memory of that size.
inline ipc::Fds FirstDescriptor(ipc::FdKind kind, uint64_t id, Bytes size) {
  ipc::Fds fds;
  fds.seq = 1;
  fds.kind = kind;
  fds.ids = {id};
  fds.sizes = {size};
  fds.fds.emplace_back(memfd_create("memory", MFD_CLOEXEC));
  METS_CHECK(ftruncate(fds.fds[0].get(), size.count()) == 0);
  return fds;
}

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_FIRST_DESCRIPTOR_H_
