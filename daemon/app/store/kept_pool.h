// KeptPool: the memory that an earlier daemon has left with the service
// manager.
#ifndef METS_DAEMON_APP_STORE_KEPT_POOL_H_
#define METS_DAEMON_APP_STORE_KEPT_POOL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/unique_fd.h"
#include "daemon/app/recovery/recovery.h"
#include "daemon/app/store/journal.h"
#include "daemon/core/values.h"
#include "daemon/memory/memory_manager.h"

namespace mets::app {

inline constexpr char kJournalName[] = "journal";

struct KeptPool {
  std::unique_ptr<Journal> journal;
  JournalBasis basis;
  core::KeptState state;
  std::map<std::string, UniqueFd> descriptors;  // Of chunks and extents.
};

// Reads what was kept, which has a journal. An error says why it is of no use.
absl::StatusOr<KeptPool> ReadKeptPool(std::map<std::string, UniqueFd> kept);

// What is to be recovered with it, instead of what the state file says.
// FAILED_PRECONDITION when its processes cannot be told from others, or it is
// older than the state file.
absl::StatusOr<Recovery> RecoverFrom(const KeptPool& pool,
                                     const Recovery& state_file);

JournalBasis BasisOf(const core::CoreConfig& config);
// FAILED_PRECONDITION unless it is of these devices.
absl::Status CheckBasis(const JournalBasis& basis,
                        const std::vector<core::DeviceConfig>& devices);

// Gives the descriptors to the manager.
absl::Status Adopt(KeptPool& pool,
                   const std::vector<core::DeviceConfig>& devices,
                   memory::MemoryManager& memory);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_STORE_KEPT_POOL_H_
