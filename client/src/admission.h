// Admission: the slow path of mets_op_begin.
#ifndef METS_CLIENT_SRC_ADMISSION_H_
#define METS_CLIENT_SRC_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/include/mets/mets.h"
#include "client/src/device.h"
#include "client/src/op.h"

namespace mets::client {

// Gets one op what it needs, all or nothing: its buffers resident and pinned,
// and memory for what it will allocate.
//
// How. First from what this process has. Otherwise it lets go of everything,
// waits for the evictions that the plan has due, if any (and if the plan has no
// room for the op as it is), asks the daemon for the whole need, and waits with
// nothing pinned and nothing reserved, so that ops which wait for each other
// cannot stop one another. What left meanwhile is asked for again; after
// kPatience such rounds, and for ops whose need is unknown where they have to
// ask or the device is tight, it takes the device's overdraft token, whose only
// holder keeps what it has while it waits for the rest; but for kKeepFor only,
// because an op that has begun without the token may need just that to end.
//
// Used by one thread. `op` has no pins at the start.
class Admission {
 public:
  Admission(Device& device, Op* op) : device_(device), op_(op) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission();

  // INVALID_ARGUMENT when an address is in no live buffer.
  absl::Status Add(const mets_access& access);
  void AddNew(Bytes bytes);
  // The op may allocate more than it has said.
  void set_unknown() { unknown_ = true; }

  // Blocks. On failure the op is as it was.
  absl::Status Run(absl::Time deadline);

  // For an op that wants `more` in its middle, and has waited for that with its
  // buffers pinned, in vain: what it waits for may be pinned by an op that
  // waits for these. It lets go of them, which then may leave behind what it
  // has launched on its stream, and gets them back, where they were, together
  // with a reservation for `more`. On failure it has its buffers.
  static absl::Status BeginAgain(Device& device, Op* op, Bytes more,
                                 absl::Time deadline);

  // Makes one buffer resident for a thread that may hold pins.
  static absl::Status BringBack(Device& device, Buffer* buffer,
                                const void* address);

  // So long something that waits may keep what others wait for.
  static constexpr absl::Duration kKeepFor = absl::Milliseconds(100);

 private:
  static constexpr int kPatience = 2;
  struct Target {
    Buffer* buffer = nullptr;
    const void* address = nullptr;
    bool write = false;
    bool allocated = false;  // By the op itself.
    bool pinned = false;
    ChunkSet chunks;  // To restore it with.
  };

  // The buffer's, a new one where there is none.
  Target& TargetOf(Buffer* buffer, const void* address);
  // While it waits, it keeps what it has.
  bool keeps() const { return op_->tokens > 0 && !let_go_; }
  // A buffer of the op is not resident, or just coming back.
  bool SomethingAway() const;
  absl::Status PinResident();
  // Memory for everything that is missing; false leaves `shortfall_`.
  bool Reserve();
  bool TakeGranted(Bytes size, ChunkSet* chunks);
  // False when a buffer left again.
  absl::StatusOr<bool> RestoreMissing();
  absl::StatusOr<bool> RestoreOne(size_t target);
  // The buffer is gone. An op that begins again can do without: it had what it
  // needs.
  absl::Status Drop(size_t target);
  // What it asks the daemon for.
  std::vector<Bytes> Lacking() const;
  // Until the deadline, or `until`: RESOURCE_EXHAUSTED.
  absl::Status Ask(absl::Time deadline, absl::Time until, bool overdraft);
  // Unpins, and gives what was reserved to the caches.
  void LetGo();
  void ReturnUnused();
  void Finish();

  Device& device_;
  Op* const op_;
  std::vector<Target> targets_;
  std::vector<Bytes> new_ranges_;   // All that the op announced.
  std::vector<Bytes> missing_new_;  // Not yet reserved.
  std::vector<ReservedChunks> granted_;
  std::vector<Bytes> shortfall_;
  std::optional<PlanRunner::Demand> demand_;
  bool again_ = false;
  bool unknown_ = false;
  bool let_go_ = false;  // It has kept things in vain.
  // The thread may hold pins, so only the token lets it wait safely.
  bool holds_pins_ = CurrentOp() != nullptr;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_ADMISSION_H_
