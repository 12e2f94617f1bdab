#include "client/src/chunk_importer.h"

#include <utility>

#include "client/src/device.h"
#include "common/base/status_macros.h"

namespace mets::client {

void ChunkImporter::Begin() {
  absl::MutexLock lock(&mutex_);
  ++running_;
}

void ChunkImporter::End() {
  absl::MutexLock lock(&mutex_);
  --running_;
}

absl::Status ChunkImporter::Import(Device& device, const Chunks& chunks,
                                   uint64_t fd_seq) {
  if (!inbox_.WaitFor(fd_seq)) {
    return absl::UnavailableError("the connection broke");
  }
  for (const v1::Chunk& chunk : chunks) {
    if (device.KnowsChunk(chunk.chunk_id())) continue;
    METS_ASSIGN_OR_RETURN(DescriptorInbox::Entry entry,
                          inbox_.TakeChunk(chunk.chunk_id()));
    METS_RETURN_IF_ERROR(
        device.ImportChunk(chunk.chunk_id(), std::move(entry.fd), entry.size));
  }
  return absl::OkStatus();
}

void ChunkImporter::AwaitEnd() {
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ == 0;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none));
}

}  // namespace mets::client
