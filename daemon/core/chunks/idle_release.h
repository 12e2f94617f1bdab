// IdleRelease: gives back what nobody has used for a while.
#ifndef METS_DAEMON_CORE_CHUNKS_IDLE_RELEASE_H_
#define METS_DAEMON_CORE_CHUNKS_IDLE_RELEASE_H_

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/chunks/retirement.h"
#include "daemon/core/state.h"

namespace mets::core {

// Other programs use devices and host memory as well. Of a device's free
// chunks, as many bytes are destroyed as were free all the time during
// CoreConfig::idle_release, large chunks first; of swap space, the extents that
// held nothing all that time. What jobs keep cached is theirs.
//
// Not thread-safe. Borrows the state and the retirement.
class IdleRelease {
 public:
  IdleRelease(State* state, Retirement* retirement)
      : state_(*state),
        retirement_(*retirement),
        free_(state->devices.size()) {}

  // After each Step.
  void Advance();
  // When something will have been idle for long enough, or later, when it is
  // known by then; InfiniteFuture when there is nothing that might be.
  absl::Time next_deadline() const;

 private:
  // Of a device's free bytes.
  struct Least {
    absl::Time since = absl::InfiniteFuture();
    Bytes bytes;  // That have been free since then.
  };

  absl::Time After(absl::Time since) const;
  void LookAtChunks(size_t device);
  Bytes ReleaseChunks(size_t device, Bytes bytes);
  void LookAtExtents();

  State& state_;
  Retirement& retirement_;
  std::vector<Least> free_;  // By device.
  // Extents that were empty at the last look, with their takes() then.
  std::map<ExtentId, uint64_t> empty_;
  absl::Time looked_ = absl::InfiniteFuture();
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_CHUNKS_IDLE_RELEASE_H_
