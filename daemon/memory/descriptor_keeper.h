// DescriptorKeeper: whoever keeps descriptors beyond the daemon's end.
#ifndef METS_DAEMON_MEMORY_DESCRIPTOR_KEEPER_H_
#define METS_DAEMON_MEMORY_DESCRIPTOR_KEEPER_H_

#include "common/base/ids.h"

namespace mets::memory {

// Gets a copy of each descriptor before anybody else hears of what it stands
// for, and drops it before that is destroyed. Thread-safe; may block for as
// long as another process takes for a message.
class DescriptorKeeper {
 public:
  virtual ~DescriptorKeeper() = default;
  virtual void Keep(ChunkId chunk, int fd) = 0;
  virtual void Keep(ExtentId extent, int fd) = 0;
  virtual void Drop(ChunkId chunk) = 0;
  virtual void Drop(ExtentId extent) = 0;
};

}  // namespace mets::memory

#endif  // METS_DAEMON_MEMORY_DESCRIPTOR_KEEPER_H_
