// Device: one attached device in this process.
#ifndef METS_CLIENT_SRC_DEVICE_H_
#define METS_CLIENT_SRC_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/include/mets/mets.h"
#include "client/src/buffer_table.h"
#include "client/src/chunk_cut.h"
#include "client/src/chunk_sets.h"
#include "client/src/chunk_store.h"
#include "client/src/extent_store.h"
#include "client/src/gate.h"
#include "client/src/missed_accesses.h"
#include "client/src/op.h"
#include "client/src/plan_runner.h"
#include "client/src/range_cache.h"
#include "client/src/record_file.h"
#include "client/src/recorder.h"
#include "client/src/returner.h"
#include "client/src/slab_set.h"
#include "client/src/step_watch.h"
#include "client/src/stream_drainer.h"
#include "client/src/stream_table.h"
#include "client/src/uplink.h"
#include "client/src/wait_clock.h"
#include "common/device/map_driver.h"
#include "common/steps/step_meter.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

struct DeviceOptions {
  std::string id;
  std::string kind;
  Bytes pool;
  Bytes limit;
  absl::Duration wait;
  std::string job = "job";  // Names recordings.
  bool gated = false;       // The program announces no ops: buffers are held.
  // Phantom evictions, for allocations of at least so many bytes. Zero: none.
  Bytes phantom = Bytes();
  std::vector<Bytes> chunk_classes = {};  // Ascending.
};

// A share that this process has: its buffer is fixed, read-only and unknown to
// the daemon as a buffer.
struct HeldShare {
  uint64_t id = 0;
  uint64_t epoch = 0;
  std::string name;
  Bytes size;
  ChunkSet chunks;
};

// What a share is to be, or must be.
struct ShareWish {
  std::string name;
  std::string checksum;
  uint64_t bytes = 0;  // 0: any.
};

// Memory for a new range, or for a buffer that comes back.
struct MemoryNeed {
  Bytes size;
  const Buffer* back = nullptr;
};

// Which of the buffers that have changed a report describes.
enum class ReportScope {
  kAll,
  // Of those that the daemon does not know only what was there at the last
  // report: most are gone by the next. Not what was merely used.
  kLasting,
  // The same, and what was merely used.
  kLastingUses,
};

// Counters that only grow.
struct DeviceTotals {
  std::atomic<uint64_t> evicted_bytes{0}, restored_bytes{0}, evictions{0},
      clean_evictions{0}, restores{0}, unobserved_accesses{0}, acquires{0},
      waits{0}, wait_ns{0};
};

// Buffers, cached ranges and chunks of one device, and how they move.
//
// Thread-safe. Nothing slow happens under the mutex: mappings and copies are
// made by the thread that owns the buffer's phase (buffer_word.h). Lives until
// the process ends. `uplink` must outlive it.
//
// The implementation is in device.cc (allocations), admission.h (ops),
// device_streams.cc (whose work may still touch a range), device_move.cc
// (eviction, restores), device_phantom.cc (phantom evictions), device_plan.cc
// (those of a plan), device_cut.cc (sizes of chunks), device_report.cc (what
// the daemon is told), device_share.cc (shared memory), device_record.cc
// (recordings).
class Device {
 public:
  static absl::StatusOr<std::unique_ptr<Device>> Create(
      Uplink& uplink, std::unique_ptr<MapDriver> driver, DeviceOptions options);
  ~Device();

  const DeviceOptions& options() const { return options_; }
  Bytes slab_threshold() const { return slab_threshold_; }
  Bytes limit() const { return Bytes(limit_.load()); }
  // As the daemon says, or because a plan is followed.
  bool tight() const {
    return tight_.load(std::memory_order_relaxed) || plan_runner_.following();
  }
  void SetLimits(Bytes limit, bool tight);
  bool Owns(const void* address) const { return table_->Owns(address); }

  // --- the C interface, see mets.h -------------------------------------------
  absl::Status Alloc(const mets_alloc_options& options, void** address);
  void Free(void* address, mets_stream stream = nullptr);
  absl::Status FindBuffer(const void* address, mets_buffer_info* info);
  absl::Status SetMobility(void* address, Mobility mobility);
  absl::Status BeginOp(const mets_access* accesses, size_t count,
                       uint64_t expected_bytes, Op** op,
                       mets_stream stream = nullptr);
  void EndOp(Op* op, mets_stream stream = nullptr);
  // A section of a program that does not announce its ops: as an op without
  // accesses; where all are gated, every buffer is resident when it begins. An
  // error: it has not begun. Leave ends the thread's innermost one.
  absl::Status EnterSection();
  void LeaveSection();
  // Between two steps, as the program says. Steps that were found do not count
  // from then on.
  void StepEnds();
  Gate& gate() { return gate_; }
  // A quantum that begins also begins to bring back what has left.
  void FollowGate(const v1::Gate& order);
  void GetStats(mets_stats_t* stats);
  void ResetPeak();
  void MemoryInfo(uint64_t* free, uint64_t* total);

  // Shared memory (device_share.cc).
  absl::Status Publish(void* address, const ShareWish& wish);
  absl::StatusOr<void*> AttachShare(const ShareWish& wish);
  absl::Status DetachShare(void* address);

  // Recordings to a file of this process.
  bool recording() const { return recorder_.on(); }
  absl::Status StartRecording(const std::string& path);
  absl::Status StopRecording();

  // Serves an access that no op announced: brings the buffer back and holds
  // it. False when `address` lies in no buffer. Blocks.
  bool ServeFault(const void* address, const Access& access);

  // Says what the phantom evictions have found; once, and only if there are
  // any.
  void SayMissedAccesses();

  // --- orders; one thread at a time

  // Evicts one buffer to `slot`, unless bytes of another one lie there. Its
  // chunks are given back; without an order, the plan wants it: they stay, and
  // it is reported as any other change. REQUIRES: no eviction of another
  // generation's order is committed, i.e. the session waits for these calls
  // before it sends a snapshot.
  struct EvictResult {
    v1::BufferOutcome outcome;
    bool clean = false;
    Bytes freed;
  };
  EvictResult Evict(uint64_t buffer_id, const v1::Slot& slot,
                    std::optional<uint64_t> order_id);
  // The same in two parts, between which its bytes are copied, so that several
  // may be under way. Without a departure, the result is there at once.
  struct Departure {
    Buffer* buffer = nullptr;
    uint64_t buffer_id = 0;
    uint64_t number = 0;
    Bytes size;
    SwapSlot slot;
    StreamTable::Moment used = StreamTable::kNow;
    bool clean = false;
    absl::StatusOr<Fence> copied = Fence::kPassed;
  };
  std::optional<Departure> BeginEviction(uint64_t buffer_id,
                                         const v1::Slot& slot,
                                         EvictResult* result);
  EvictResult FinishEviction(Departure departure,
                             std::optional<uint64_t> order_id);
  // True when no waiting op has said that it needs the buffer.
  bool Unwanted(uint64_t buffer_id);
  // Sends the order's answer; reports, which come behind it, may describe its
  // buffers again. A buffer that was freed meanwhile is FREED in the answer.
  void AnswerEvictions(v1::OrderDone done);
  // Follows a plan, instead of the one before, which ends: nothing is written
  // to its slots any more, and what lies in them has been reported. An error
  // leaves none. REQUIRES: its extents are registered.
  absl::Status FollowPlan(const v1::Plan& plan);
  // As a plan without absences, without reports.
  void EndPlan();
  // Gives back up to `target` bytes of cached memory.
  void Trim(Bytes target, uint64_t order_id);

  // --- lending (device_lend.cc)
  // Gives back what is free, for the time until the process's next turn. Cached
  // ranges stay mapped; nothing may touch them meanwhile.
  void Lend();
  // The daemon has granted these chunks, which had been lent: ranges that are
  // whole again are cached.
  void Regrant(const v1::Regrant& regrant);

  // --- orders that make the process forget; one thread at a time
  // Forgets a chunk; false when it is held.
  bool Forget(uint64_t chunk_id);
  void ForgetExtent(uint64_t extent_id);
  absl::Status RegisterExtent(uint64_t id, UniqueFd fd, Bytes size);
  bool KnowsExtent(uint64_t id);

  // Where mappings are kept and a plan is followed: gives some free chunks back
  // for others, of which the step's buffers need fewer (device_cut.cc). False:
  // there is nothing to do now. Blocks.
  bool ExchangeChunks();

  // Tells metsd about the training step (device_steps.cc), if there is news.
  void ReportSteps();

  // --- recordings for the daemon (device_record.cc)
  // Begins or ends one. What cannot begin is answered with an error's line.
  void OnRecord(const v1::Record& record);
  // Sends what has been recorded since the last call.
  void SendRecording();
  // The process ends: sends the rest. False when there is no recording.
  bool EndRecordings();

  // --- chunks
  // -------------------------------------------------------------------
  bool KnowsChunk(uint64_t id);
  absl::Status ImportChunk(uint64_t id, UniqueFd fd, Bytes size);
  // The daemon has granted these. INTERNAL when one is unknown or held.
  absl::StatusOr<Grant> Hold(const std::vector<uint64_t>& ids,
                             const std::vector<uint32_t>& range_chunks);
  // Unmapped chunks that nobody uses go back to the daemon.
  void GiveBack(const ChunkSet& chunks, uint64_t order_id);
  void GiveBackGrant(const Grant& grant);
  // Gives overdraft tokens back.
  void ReleaseTokens(int count, uint64_t generation);

  // Counts a request, and how long it waited (zero: not at all).
  void NoteAcquire(absl::Duration waited);
  void NoteWait(absl::Duration waited);

  // --- reports

  // The stream has broken: nothing is said until the next snapshot, and no plan
  // is followed until the daemon sends one. Returns when nothing moves by it.
  void Mute();
  // The daemon is a new one: everything held is an orphan now. REQUIRES: Mute.
  void BeginEpoch(uint64_t old_epoch);
  // Sends the whole state, and everything that changes later behind it.
  // `last`: no other device's follows.
  void SendSnapshot(bool last);
  // Sends what has changed since the last report, if anything.
  bool ReportChanges(ReportScope scope);
  // The process ends: sends its counters. False when they are known.
  bool SendLastTotals();

 private:
  friend class Admission;
  friend class Homecoming;

  Device(Uplink& uplink, std::unique_ptr<MapDriver> driver,
         std::unique_ptr<AddressTable> table, DeviceOptions options);

  // Allocations (device.cc).
  absl::Status AllocSmall(const mets_alloc_options& options,
                          absl::Duration patience, Stream stream, Op* op,
                          void** address);
  // False when no slab has room.
  bool AllocInSlab(const mets_alloc_options& options, Stream stream, Op* op,
                   void** address, Slab** slab, Slab::Debt* debt);
  // `patience`: how long to wait for memory. `slab`: its allocations are noted
  // one by one.
  absl::StatusOr<Buffer*> AllocBuffer(Bytes size, uint64_t bytes,
                                      Mobility mobility,
                                      absl::Duration patience, Stream stream,
                                      Op* op, bool slab);
  Buffer* TakeMapped(Bytes size, const Stream& stream, Op* op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeReservedChunks(Bytes size, Op* op, ChunkSet* chunks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `asked`: in vain, without waiting. False: the op has a reservation for it
  // now.
  absl::StatusOr<bool> AcquireOne(Bytes size, absl::Time deadline, bool asked,
                                  Op* op, ChunkSet* chunks);
  // As the program wants it; held where its ops are not seen.
  Mobility Allowed(Mobility mobility) const {
    return options_.gated && mobility == Mobility::kMovable ? Mobility::kHeld
                                                            : mobility;
  }
  absl::StatusOr<Buffer*> MapNew(Bytes size, const ChunkSet& chunks);
  // The same; an error leaves the chunks to the caller.
  absl::StatusOr<Buffer*> MapRange(Bytes size, const ChunkSet& chunks);
  void Begin(Buffer* buffer, uint64_t bytes, Mobility mobility, Op* op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeSmall(Buffer* buffer, void* address, StreamMask stream);
  // Frees a slab that could move and in which nothing is allocated; false when
  // the buffer is something else.
  bool FreeEmptySlab(uint64_t buffer_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Slabs that stay although they are empty, while memory is not short. False
  // when there was none.
  bool FreeSpareSlabs() ABSL_LOCKS_EXCLUDED(mutex_);
  // REQUIRES: the buffer is an empty slab. Its buffer is to be freed then.
  void RemoveSlab(Buffer* buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeBuffer(Buffer* buffer);
  // Ends a buffer that nobody uses, but for `op` where it is given, which has
  // allocated it; `freed` as in TryDispose. False: it is something else.
  bool TryEnd(Buffer* buffer, uint64_t freed, Op* op)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndResident(Buffer* buffer, Op* op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a freed buffer if this caller may; keeps its range for `op` when that
  // has a reservation. `freed`: bytes that live no more.
  void TryDispose(Buffer* buffer, uint64_t freed = 0, Op* op = nullptr);
  void NoteAlloc(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Pins; see BufferWord.
  bool TryPin(Buffer* buffer) {
    bool claim = false;
    if (buffer->word.TryPin(&claim)) return true;
    if (claim) TryDispose(buffer);
    return false;
  }
  void Unpin(Buffer* buffer) {
    if (buffer->word.Unpin()) {
      TryDispose(buffer);
    } else if (phantoms_ != nullptr) {
      Hide(buffer);
    }
  }
  // The op's work is on `stream`.
  void UnpinAll(Op* op, StreamMask stream = 0);
  // Whether an op with these accesses has to do with the device.
  bool UsesDevice(const mets_access* accesses, size_t count) const;
  bool NothingPinned();
  absl::Status BeginSlow(const mets_access* accesses, size_t count,
                         uint64_t expected_bytes, Op* op);

  // The program's streams (device_streams.cc).
  // A new buffer, which nobody knows yet, is used first on `stream`, after
  // whatever may still touch its range.
  void PassTo(const Stream& stream, Buffer* buffer);
  // Block until no stream touches these ranges or chunks, ours neither.
  // REQUIRES: they are nobody's.
  void AwaitStreams(const std::vector<Buffer*>& ranges)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitStreams(const ChunkSet& chunks);
  void AwaitStreams(StreamMask users, StreamTable::Moment used);
  // Blocks until evictions that were called off have ended.
  void AwaitCopies(const std::vector<Buffer*>& ranges)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Moves (device_move.cc).
  enum class PinResult { kPinned, kSwapped, kGone };
  // Pins a resident buffer, after waiting for what others do with it; brings
  // one back that is being evicted.
  PinResult PinOrWait(Buffer* buffer);
  void WaitWhileOwned(Buffer* buffer);
  void Signal();
  // It leaves kResident: one that is a slab for movable allocations serves none
  // until it is back. (A gated program has everything back before it runs.)
  void NoteAway(Buffer* buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteBack(Buffer* buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // REQUIRES: the caller has moved it to kResuming.
  void Resume(Buffer* buffer);
  // REQUIRES: the caller has moved it to kRestoring; it is pinned afterwards.
  absl::Status Restore(Buffer* buffer, const ChunkSet& chunks);
  // What BeginEviction chooses: finds the buffer, takes the slot for it, and
  // moves it to kBlocking.
  std::optional<Departure> Choose(uint64_t buffer_id, const v1::Slot& slot,
                                  bool* held, EvictResult* result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves its slot to others, and brings the buffer back. REQUIRES: the caller
  // has moved it to kResuming.
  EvictResult CallOff(const Departure& departure, v1::BufferOutcome outcome);
  // The copy has been made, and the caller has moved the buffer to kUnmapping:
  // unmaps, and gives the chunks back.
  EvictResult CommitEviction(Departure departure,
                             std::optional<uint64_t> order_id);
  // Its first `size` bytes.
  absl::StatusOr<SwapSlot> ResolveSlot(const v1::Slot& slot, Bytes size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins an eviction to a slot, which another buffer loses by that. False,
  // and nothing has changed, when that buffer's bytes lie in it or are on their
  // way, or the buffer cannot leave.
  bool TakeSlot(Buffer* buffer, uint64_t slot_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The eviction did not come about.
  void LeaveSlot(const Departure& departure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetSlot(Buffer* buffer, SwapSlot slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns extents that nobody needs any more.
  std::vector<ExtentHandle> DropSlot(Buffer* buffer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Phantom evictions (device_phantom.cc).
  // Blocks accesses to a buffer that could be evicted now.
  void Hide(Buffer* buffer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Allows them again.
  void Unhide(Buffer* buffer) {
    if (buffer->word.TryMove(Phase::kHidden, Phase::kResuming)) Resume(buffer);
  }
  // The one that is to leave now: it can only when it is not hidden.
  void UnhideForEviction(uint64_t buffer_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its buffers' last op.
  void NoteUser(Op& op) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteMissed(const Access& access, const Buffer& buffer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Of which sizes chunks are to be, from now on (device_cut.cc). `program`: of
  // the plan's step.
  void WantChunksFor(const steps::StepProgram& program, const v1::Plan& plan)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The plan (device_plan.cc).
  void StopPlan() ABSL_EXCLUSIVE_LOCKS_REQUIRED(plan_mutex_);
  // Unless an op waits for it.
  void EvictByPlan(uint64_t buffer_id, const v1::Slot& slot);
  // False when there is no memory; true also when it need not come back.
  bool RestoreByPlan(uint64_t buffer_id, absl::FunctionRef<void()> has_memory);
  // Waits while somebody else has the buffer; one that is just leaving stays.
  // What it needs, if it is swapped.
  std::optional<MemoryNeed> NeedOf(uint64_t buffer_id);
  // TakeLocally for one range; when that fails, again whenever the plan has
  // evicted something.
  bool TakeOrAwait(Bytes size, ChunkSet* chunks);
  // For `need`. Waits until the plan has evicted something; false when nothing
  // is on its way out that was due when the demand began, and when the plan has
  // room for the need as it is: the daemon has the memory then. Begins the
  // demand.
  bool AwaitEviction(Bytes need, std::optional<PlanRunner::Demand>* demand);

  // Ranges and chunks (device_cache.cc).
  // Deletes ranges that have been taken out of the cache. Dismantle waits until
  // nobody's work touches their chunks; TakeApart does not.
  ChunkSet Dismantle(const std::vector<Buffer*>& ranges);
  ChunkSet TakeApart(const std::vector<Buffer*>& ranges);
  // Whether chunks may be somewhat more than what was asked for: what comes
  // back needs what it had.
  enum class Fill { kExactly, kAboutAsMuch };
  static Bytes MostOf(Bytes size, Fill fill) {
    return fill == Fill::kExactly ? size : LargestFit(size);
  }
  // Oldest cached ranges that, with the idle chunks, can fill all of `sizes`;
  // false when all of them cannot. Where mappings are kept, taking ranges apart
  // costs nothing, and many small chunks are slow to map: all of them then.
  bool PickDismantled(const std::vector<Bytes>& sizes, Fill fill,
                      std::vector<Buffer*>* ranges)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Chunks for all of the needs from idle chunks and cached ranges, or none;
  // where mappings are kept, such as are mapped together already, if it can.
  bool TakeLocally(const std::vector<MemoryNeed>& needs,
                   std::vector<ChunkSet>* chunks, Fill fill = Fill::kExactly);
  // Those, taken out of the idle ones and out of cached ranges, which go to
  // `ranges` whole; or nothing.
  ChunkSet TakeTogether(const MemoryNeed& need, Fill fill,
                        std::vector<Buffer*>* ranges)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // These, which are free: idle, or in cached ranges, which go to `ranges`
  // whole.
  void TakeFree(const ChunkSet& chunks, std::vector<Buffer*>* ranges)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those that the buffer had, if they are free.
  ChunkSet ChunksBefore(const Buffer& buffer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseChunk(Chunk* chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    sets_.Forget(chunk);
    chunks_.Erase(chunk);
  }
  void SetRange(const ChunkSet& chunks, Buffer* range)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Chunk* chunk : chunks) chunk->range = range;
  }
  void ReturnIdle(const ChunkSet& chunks);
  void PutIdle(const ChunkSet& chunks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutIdle(Buffer* range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Shared memory (device_share.cc).
  // The buffer, fixed, resident and pinned.
  absl::StatusOr<Buffer*> BeginPublishing(void* address);
  absl::Status AskToPublish(Buffer* buffer, const ShareWish& wish);
  // Its chunks are the share's from now on.
  absl::Status TakePublished(Buffer* buffer, const std::string& name,
                             const v1::ShareAnswer& answer);
  absl::StatusOr<HeldShare*> TakeAttached(const std::string& name,
                                          const v1::ShareAnswer& answer);
  HeldShare* AddShare(const std::string& name, const v1::ShareAnswer& answer,
                      const ChunkSet& chunks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Buffer*> MapShare(HeldShare* share, uint64_t bytes);
  // Nothing of it is mapped any more.
  void LeaveShare(HeldShare* share) ABSL_LOCKS_EXCLUDED(mutex_);
  // After a fault: whether it is a share, and says so.
  bool SaysReadOnly(Buffer* buffer) ABSL_LOCKS_EXCLUDED(mutex_);
  // A freed buffer that is nobody's. Waits for the streams that use it.
  void DisposeShare(Buffer* buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lending (device_lend.cc).
  // A chunk that is the process's again, or goes away, is mapped in no lent
  // range: ends the loan of those ranges.
  void EndLoans(const std::vector<Buffer*>& ranges)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lending_) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndAllLoans();
  // Takes them off the list; they stay mapped.
  void Unlist(const std::vector<Buffer*>& ranges)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lending_, mutex_);
  // Once some chunks are held again: caches the ranges of which all are;
  // `broken` are those of which a part is.
  void CacheWhatIsWhole(std::vector<Buffer*>* broken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lending_, mutex_);

  // Reports (device_report.cc).
  void SendLocked(v1::ClientMessage message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (message.has_release()) reported_cached_.reset();
    if (!muted_) uplink_.Send(std::move(message));
  }
  ReportedBuffer Describe(Buffer* buffer, uint64_t epoch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillReport(Buffer* buffer, const ReportedBuffer& now,
                  v1::BufferReport* report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Totals CurrentTotals() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // They count as reported then.
  void FillTotals(v1::Totals* totals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counters have changed, and it is time to say so.
  bool TotalsDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Bytes CachedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The training step (device_steps.cc).
  // Since a fixed moment, without the time in which an op waited: at the gate,
  // for memory, for its buffers.
  absl::Duration JobTime();
  // `name`: of the op; may be null.
  void WatchBegin(const char* name, const mets_access* accesses, size_t count,
                  StepWatch::Op* op);
  // All buffers, also those that live already, are watched from now on.
  void StartWatch();
  void EndStep();

  // Recordings (device_record.cc).
  // Buffers that are not freed; `slabs`: these too.
  void TellLive(bool slabs, absl::FunctionRef<void(uint64_t, Bytes)> tell)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StartRecorder();
  // The stream has broken: a recording for the daemon ends.
  void BreakRecording();
  uint64_t RecordBegin(const char* name, const mets_access* accesses,
                       size_t count);

  Uplink& uplink_;
  const std::unique_ptr<MapDriver> driver_;
  const std::unique_ptr<AddressTable> table_;
  const DeviceOptions options_;
  const Bytes slab_threshold_;
  const Bytes granularity_;
  const bool keeps_mappings_;  // The driver does.
  StreamHandle mover_ = StreamHandle::kHostOrder;

  std::atomic<int64_t> limit_;
  std::atomic<bool> tight_{false};
  DeviceTotals totals_;

  const std::unique_ptr<MissedAccesses> phantoms_;  // Null: no phantoms.
  std::atomic<bool> said_missed_{false};

  Recorder recorder_;
  absl::Mutex record_mutex_;                                  // Before mutex_.
  uint64_t recording_id_ ABSL_GUARDED_BY(record_mutex_) = 0;  // 0: none.
  std::unique_ptr<RecordFile> record_file_ ABSL_GUARDED_BY(record_mutex_);

  StreamTable streams_{*driver_};
  WaitClock waits_;
  WaitClock stalls_;  // The part of them in which buffers had to come back.
  Gate gate_;
  StepWatch step_watch_;
  std::atomic<bool> hinted_{false};  // The program says where steps end.

  absl::Mutex plan_mutex_;  // Of who begins or ends a plan. Before all others.
  absl::Mutex homecoming_;  // Of who brings all back. Before mutex_.
  absl::Mutex lending_;  // Before mutex_; held while lent ranges are unmapped.
  absl::Mutex mutex_;
  absl::CondVar changed_;  // A buffer's phase has got another owner or none.
  BufferPool buffers_ ABSL_GUARDED_BY(mutex_);
  ChunkStore chunks_ ABSL_GUARDED_BY(mutex_);
  ChunkCut cut_ ABSL_GUARDED_BY(mutex_);
  ChunkSets sets_ ABSL_GUARDED_BY(mutex_);  // Where mappings are kept.
  ExtentStore extents_ ABSL_GUARDED_BY(mutex_);
  RangeCache cache_ ABSL_GUARDED_BY(mutex_);
  std::vector<Buffer*> lent_ ABSL_GUARDED_BY(mutex_);  // Ranges, oldest first.
  SlabSet slabs_ ABSL_GUARDED_BY(mutex_);
  std::list<HeldShare> shares_ ABSL_GUARDED_BY(mutex_);
  // Slot of the present epoch → the buffer whose `slot` it is, or will be.
  absl::flat_hash_map<uint64_t, uint64_t> slot_owners_ ABSL_GUARDED_BY(mutex_);
  uint64_t departures_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the program's allocations.
  uint64_t live_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t peak_live_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t allocations_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cache_hits_ ABSL_GUARDED_BY(mutex_) = 0;
  // Buffers on their way out, swapped, or on their way back. Changed with
  // mutex_; raised before a held buffer's evictor looks at the gate.
  std::atomic<int64_t> away_{0};
  Bytes buffer_bytes_ ABSL_GUARDED_BY(mutex_);  // Mapped in live buffers.
  Bytes peak_buffer_bytes_ ABSL_GUARDED_BY(mutex_);
  Bytes swapped_bytes_ ABSL_GUARDED_BY(mutex_);
  steps::StepMeter step_meter_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> freed_ids_ ABSL_GUARDED_BY(mutex_);  // To be reported.
  bool muted_ ABSL_GUARDED_BY(mutex_) = false;
  // None: metsd has counted what was released or granted again meanwhile.
  std::optional<Bytes> reported_cached_ ABSL_GUARDED_BY(mutex_);
  std::string reported_totals_ ABSL_GUARDED_BY(mutex_);
  uint32_t totals_told_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reported_version_ ABSL_GUARDED_BY(mutex_) = 0;  // StepWatch's.
  // Last: their threads end before the rest goes.
  StreamDrainer drainer_;
  Bytes plan_budget_ ABSL_GUARDED_BY(mutex_);  // Of the last plan.
  PlanRunner plan_runner_;
  Returner returner_{*this};
};

// The one called `id`; null when there is none.
Device* FindDevice(const std::vector<Device*>& devices, const std::string& id);

// Milliseconds of a coarse monotonic clock: cheap.
uint32_t CoarseNowMs();

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_DEVICE_H_
