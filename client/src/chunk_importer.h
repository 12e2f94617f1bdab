// ChunkImporter: makes devices know the chunks that metsd names.
#ifndef METS_CLIENT_SRC_CHUNK_IMPORTER_H_
#define METS_CLIENT_SRC_CHUNK_IMPORTER_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/src/descriptor_inbox.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

class Device;

// Thread-safe. Borrows the inbox.
class ChunkImporter {
 public:
  using Chunks = google::protobuf::RepeatedPtrField<v1::Chunk>;

  explicit ChunkImporter(DescriptorInbox& inbox) : inbox_(inbox) {}

  // Around Import and the look at whether its connection has ended meanwhile.
  void Begin();
  void End();
  // Waits for the connection's descriptor message `fd_seq`; then `device` knows
  // the chunks. UNAVAILABLE: the connection broke. NOT_FOUND: a descriptor has
  // not come.
  absl::Status Import(Device& device, const Chunks& chunks, uint64_t fd_seq);
  // Blocks until nobody is between Begin and End. Once a connection has ended
  // and the inbox is closed, nothing of it is imported any more then.
  void AwaitEnd();

 private:
  DescriptorInbox& inbox_;
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_CHUNK_IMPORTER_H_
