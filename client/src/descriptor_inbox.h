// DescriptorInbox: descriptors that have come and are not yet in use.
#ifndef METS_CLIENT_SRC_DESCRIPTOR_INBOX_H_
#define METS_CLIENT_SRC_DESCRIPTOR_INBOX_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/ipc/descriptor_channel.h"

namespace mets::client {

// Messages do not say which device a descriptor belongs to; the grant or order
// that needs it does. Thread-safe.
class DescriptorInbox {
 public:
  struct Entry {
    UniqueFd fd;
    Bytes size;
  };

  void Put(ipc::Fds fds);
  // NOT_FOUND when it has not come.
  absl::StatusOr<Entry> TakeChunk(uint64_t id);
  // A duplicate: extents serve several devices.
  absl::StatusOr<Entry> CopyExtent(uint64_t id);
  void ForgetChunk(uint64_t id);
  void ForgetExtent(uint64_t id);

  // A new connection: messages count from 1 again. `new_epoch`: nothing of what
  // came before is worth anything.
  void Reset(bool new_epoch);
  // Blocks until the connection's message `seq` has come; false when the
  // connection has been reset or closed since.
  bool WaitFor(uint64_t seq);
  void Close();

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> chunks_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Entry> extents_ ABSL_GUARDED_BY(mutex_);
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t resets_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_DESCRIPTOR_INBOX_H_
