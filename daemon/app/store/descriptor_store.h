// DescriptorStore: descriptors that the service manager keeps for the next run.
#ifndef METS_DAEMON_APP_STORE_DESCRIPTOR_STORE_H_
#define METS_DAEMON_APP_STORE_DESCRIPTOR_STORE_H_

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/unique_fd.h"
#include "daemon/memory/descriptor_keeper.h"

namespace mets::app {

// sd_notify(3)'s FDSTORE: each descriptor under a name of its own, by which it
// comes back. The service manager says nothing when it has no room; whoever
// comes next sees that descriptors are missing.
//
// Thread-safe. A descriptor that cannot be kept makes all of them worthless:
// the store gives everything up then, says so once, and keeps nothing more.
class DescriptorStore : public memory::DescriptorKeeper {
 public:
  // `kept`: the names of what is in the store. `on_give_up` gets the reason, in
  // any thread.
  DescriptorStore(std::set<std::string> kept,
                  std::function<void(const absl::Status&)> on_give_up);

  // Whether a service manager takes descriptors.
  static bool Exists();

  static std::string NameOf(ChunkId chunk);
  static std::string NameOf(ExtentId extent);

  void Keep(const std::string& name, int fd);
  // False, and the store is given up, when that cannot be said.
  bool Drop(const std::string& name);
  // Drops what is not in `wanted`, or everything, and returns when the service
  // manager has closed it (or does not answer).
  void DropOthers(const std::set<std::string>& wanted);
  void DropAll() { DropOthers({}); }

  void Keep(ChunkId chunk, int fd) override { Keep(NameOf(chunk), fd); }
  void Keep(ExtentId extent, int fd) override { Keep(NameOf(extent), fd); }
  void Drop(ChunkId chunk) override { Drop(NameOf(chunk)); }
  void Drop(ExtentId extent) override { Drop(NameOf(extent)); }

 private:
  absl::Status Reserve(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp(const absl::Status& reason);

  const std::function<void(const absl::Status&)> on_give_up_;
  absl::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  size_t name_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_STORE_DESCRIPTOR_STORE_H_
