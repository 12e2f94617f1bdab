// PoolKeeper: sees to it that the next daemon can go on with this one's pool.
#ifndef METS_DAEMON_APP_STORE_POOL_KEEPER_H_
#define METS_DAEMON_APP_STORE_POOL_KEEPER_H_

#include <spdlog/logger.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/unique_fd.h"
#include "daemon/app/store/descriptor_store.h"
#include "daemon/app/store/journal.h"
#include "daemon/app/store/kept_pool.h"

namespace mets::app {

// Keeps the descriptors of chunks and extents, and a journal of who holds them,
// with the service manager. Whatever goes wrong costs the next daemon the pool,
// and nobody anything else; the log says so.
//
// Call in this order: TakeBack, Reject where what it gave does not serve,
// Begin, Record (in the engine's thread), NoteServing. descriptors() is
// thread-safe.
class PoolKeeper {
 public:
  // `kept`: what the service manager has passed. The logger is borrowed.
  PoolKeeper(std::map<std::string, UniqueFd> kept, spdlog::logger& log);

  // What an earlier daemon has left, once; nullopt when that is nothing, or of
  // no use, and not kept any more.
  std::optional<KeptPool> TakeBack();
  // Nothing of it is kept any more, and all descriptors are closed.
  void Reject(const absl::Status& why);

  // The pool begins so. `journal`: the one that was taken back; or null.
  void Begin(std::unique_ptr<Journal> journal, JournalBasis basis,
             const core::KeptState& state);
  // `state` gives what holds after the changes.
  void Record(const std::vector<core::Change>& changes,
              const std::function<core::KeptState()>& state);
  void NoteServing();

  memory::DescriptorKeeper& descriptors() { return store_; }

 private:
  void Rewrite(const core::KeptState& state);
  void Report(const absl::Status& status);

  spdlog::logger& log_;
  std::map<std::string, UniqueFd> kept_;
  JournalBasis basis_;
  std::unique_ptr<Journal> journal_;  // Null: not begun, or given up.
  std::atomic<bool> given_up_{false};
  DescriptorStore store_;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_STORE_POOL_KEEPER_H_
