// StepRecorder: turns what a job does with its buffers into a StepProgram.
#ifndef METS_COMMON_STEPS_STEP_RECORDER_H_
#define METS_COMMON_STEPS_STEP_RECORDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/steps/step_detector.h"
#include "common/steps/step_lap.h"
#include "common/steps/step_program.h"

namespace mets::steps {

// An op's use of a buffer that lives when it begins.
struct Touch {
  uint64_t key = 0;
  bool write = false;
};

// An op that has begun; valid for ever.
struct OpId {
  uint32_t lap = 0;  // 0: none.
  uint32_t index = 0;
  uint32_t position = 0;  // In its repetition.
};

// Sums over a step.
struct StepSummary {
  uint64_t signature = 0;   // 0: no step has been recorded.
  absl::Duration duration;  // Of the last repetition.
  Bytes working_set;        // Distinct buffers that it touches.
  Bytes peak_live;          // Of everything that lives.
  Bytes persistent_live;    // Everything that lives where it begins.
  Bytes largest_op;         // Needed at once by one op.
};

// Fed with a job's allocations, frees and ops, in the order in which they
// happen; ops may overlap. Finds the step (StepDetector), records one
// repetition of it, and from then on knows which buffer of the client is which
// logical buffer of the program, in both directions.
//
// Keys are the client's buffer ids: not 0, never used twice. Logical buffers
// that persist keep their key. Others are the k-th allocation of their size by
// an op of that signature that reads those logical buffers: ops that are alike
// but for their data (the three projections of an attention) may change places
// without their results' changing names. An allocation that cannot be told so
// (behind one that did not happen, because an output got its input's memory) is
// the first of those by an op of that signature and of that size that does not
// live.
//
// Times are since any fixed moment. Only ops that have buffers are to be told.
// Cost: O(1) amortised for each op, allocation and free, and for each touch
// where a repetition is recorded, which happens once for a new step (again when
// many of the buffers that persisted are gone, or it begins elsewhere). The
// programs of the last kKept steps are kept. Memory: O(live buffers + kKept
// programs); a step with more than StepDetector::kMostOps ops or kMostAccesses
// touches has no program.
//
// Not thread-safe; pure.
class StepRecorder {
 public:
  static constexpr size_t kMostAccesses = 1 << 20;
  static constexpr size_t kKept = 4;
  static constexpr int kTimings = 16;    // Repetitions whose work is timed...
  static constexpr uint32_t kParts = 4;  // ...one such part of it each time.

  // For OpBegin: of what is equal in each step: the op's kind (KindOf its
  // name), the sizes of what it touches, and which of them it writes. Not 0.
  uint64_t SignatureOf(uint64_t kind, const Touch* touches, size_t count) const;

  // An op begins. Buffers that are not known are ignored. `signature` is of
  // what is the same in each repetition. Where it is in the step: point().
  OpId OpBegin(absl::Duration now, uint64_t signature, const Touch* touches,
               size_t count);
  // May be missing.
  void OpEnd(OpId op, absl::Duration now);
  // How long the ops of the repetition that has just ended have worked on a
  // device, op by op; infinite: that is not known. They follow one another
  // there, whenever they are launched, so that the times of launching them do
  // not count any more. Of several repetitions each op's least time counts: a
  // step that is recorded while memory is short has waits for it in its ops.
  // Ignored when it was not a repetition of program() from its first op to its
  // last.
  void AddWorkTimes(const std::vector<absl::Duration>& busy);
  // `op`: that allocates, with its signature; else the op begun last is taken,
  // and the signature is 0. Nothing happens when the buffer lives already.
  void Alloc(uint64_t key, Bytes size, OpId op = OpId(),
             uint64_t signature = 0);
  // Counts as freed behind the op begun last.
  void Free(uint64_t key);

  // The op's work should be timed: AddWorkTimes. In the first repetition every
  // op's; then, if `again`, a part of them in each, because a mark takes some
  // 5 us of the program's and of the device's time.
  bool Times(OpId op, bool again) const;
  const StepPoint& point() const { return point_; }
  // Of the op begun last.
  uint32_t position() const { return point_.position; }

  // The step that repeats now; null while none is known, or its first
  // repetition is being recorded. Valid until the next OpBegin.
  const StepProgram* program() const {
    return current_ == nullptr ? nullptr : &current_->program;
  }
  // Tells programs apart; 0 while there is none. A step that comes back may
  // have its program again.
  uint64_t program_number() const {
    return current_ == nullptr ? 0 : current_->number;
  }
  // Grows whenever logical buffers get other meanings.
  uint64_t version() const { return version_; }
  const StepSummary& summary() const { return summary_; }
  Bytes live() const { return live_bytes_; }
  // Zero when it does not live.
  Bytes SizeOf(uint64_t key) const {
    const auto it = live_.find(key);
    return it == live_.end() ? Bytes() : it->second.size;
  }

  // Logical buffer ↔ client's buffer, of the program now; nothing, or 0, when
  // there is none.
  std::optional<uint32_t> LogicalOf(uint64_t key) const;
  uint64_t KeyOf(uint32_t logical) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Live {
    Bytes size;
    uint64_t identity = 0;  // In this repetition, to ops that read it.
    uint32_t logical = kNone;
    uint32_t lap = 0;  // In which `in_lap` is its number.
    uint32_t in_lap = 0;
    uint32_t op = kNone;  // In that lap, that touched it last.
  };

  void EndLap(absl::Duration now);
  // Whether the repetition ends with clearly more or less than it began with:
  // ops have crossed its ends, and what it says of them is true only once. The
  // next one is waited for, a few times.
  bool Lopsided();
  // Whether clearly less lives now than where the repetition began that was
  // recorded: less of the next one has crossed its beginning, and its program
  // says more.
  bool Better() const;
  void BeginLap(absl::Duration now, uint64_t first_op);
  // Whether repetitions have begun with another op than the recorded one did,
  // twice in a row: its positions are others.
  bool Moved(uint64_t first_op);
  void Touched(uint32_t op, uint64_t key, bool write);
  uint32_t InLap(uint64_t key, Live* live);
  // The logical buffer that an allocation is; kNone when it is none.
  uint32_t Recognise(const AllocationId& id, uint64_t signature) const;
  // The buffer is that one.
  void Name(uint64_t key, uint32_t logical, Live* live);
  // The step is `signature` now (0: none): its program, when it is kept.
  void Switch(uint64_t signature);
  // Gives the live buffers their numbers in the step now.
  void Adopt();
  // Whether so many of its persistent buffers are gone that it says little.
  bool Stale() const;
  void Detach();
  void Keep(RecordedStep step);
  void Summarize();
  void TakeTimes(absl::Duration duration);

  StepDetector detector_;
  StepPoint point_;
  absl::flat_hash_map<uint64_t, Live> live_;
  Bytes live_bytes_;

  // The repetition now.
  uint32_t lap_ = 1;
  absl::Duration lap_start_;
  Bytes lap_first_live_, lap_peak_;
  bool lap_straight_ = false;  // From its first op on.
  uint64_t first_op_ = 0;      // Its signature.
  std::vector<absl::Duration> starts_, busy_;
  std::vector<uint64_t> flows_;  // Of its ops: AllocationId::flow.
  absl::flat_hash_map<AllocationKind, uint32_t> allocated_;  // By flow.
  std::optional<StepLap> recording_;
  int lopsided_ = 0;  // Repetitions that were recorded in vain.
  bool ended_ = false;  // One of program() has, with the op begun last.

  std::vector<std::unique_ptr<RecordedStep>> kept_;  // The latest last.
  RecordedStep* current_ = nullptr;
  size_t persistent_ = 0;  // Its buffers that keep their keys.
  size_t missing_ = 0;     // Those of them that are gone.
  uint64_t last_number_ = 0;
  uint64_t version_ = 0;
  StepSummary summary_;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_RECORDER_H_
