// DescriptorTable: descriptors by id, shared between threads.
#ifndef METS_DAEMON_MEMORY_DESCRIPTOR_TABLE_H_
#define METS_DAEMON_MEMORY_DESCRIPTOR_TABLE_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/base/unique_fd.h"

namespace mets::memory {

// Owns the descriptors of things of one kind. `Owner` is kept beside each (the
// device of a chunk). Thread-safe.
template <typename ThingId, typename Owner>
class DescriptorTable {
 public:
  // REQUIRES: `id` is not in the table.
  void Insert(ThingId id, Owner owner, UniqueFd fd) {
    absl::MutexLock lock(&mutex_);
    const bool inserted =
        entries_.try_emplace(id, Entry{owner, std::move(fd)}).second;
    METS_CHECK(inserted) << "id " << id << " used twice";
  }

  // The descriptor, which stays the table's. NOT_FOUND when there is none.
  absl::StatusOr<int> Find(ThingId id) const {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(id);
    if (it == entries_.end()) {
      return absl::NotFoundError(absl::StrCat("no descriptor ", id.value()));
    }
    return it->second.fd.get();
  }

  // Takes the descriptor out; empty when there is none.
  UniqueFd Remove(ThingId id) {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(id);
    if (it == entries_.end()) return UniqueFd();
    UniqueFd fd = std::move(it->second.fd);
    entries_.erase(it);
    return fd;
  }

  // Hands every descriptor to `take(owner, fd)` and empties the table.
  template <typename Take>
  void Clear(Take take) {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, entry] : entries_) take(entry.owner, std::move(entry.fd));
    entries_.clear();
  }

 private:
  struct Entry {
    Owner owner;
    UniqueFd fd;
  };
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<ThingId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::memory

#endif  // METS_DAEMON_MEMORY_DESCRIPTOR_TABLE_H_
