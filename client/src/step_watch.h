// StepWatch: finds the process's training step on a device, and tells metsd.
#ifndef METS_CLIENT_SRC_STEP_WATCH_H_
#define METS_CLIENT_SRC_STEP_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/src/plan_guide.h"
#include "client/src/plan_sink.h"
#include "common/base/bytes.h"
#include "common/device/map_driver.h"
#include "common/steps/report_pacer.h"
#include "common/steps/step_recorder.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// A StepRecorder for several threads, and its messages: the program when it is
// another one than the last sent, or its work takes clearly less time than was
// said, and a digest, about once a second while ops run (ReportPacer).
//
// It also says what a plan wants moved while the step goes on (PlanGuide).
//
// Programs without ops have no step: nothing is watched before Start.
//
// Thread-safe; calls nothing of the device but the PlanSink. Buffers are those
// of their own, without slabs.
class StepWatch {
 public:
  // An op while it runs.
  struct Op {
    steps::OpId id;
    uint64_t signature = 0;  // 0: it is not watched.
    // Where its work on the device begins and ends should be marked.
    bool timed = false;
    TimeMark work_begins, work_ends;
    // What it touches or allocates, while a plan is followed.
    std::vector<UsedBuffer> used;

    void Reset() {
      id = steps::OpId();
      signature = 0;
      timed = false;
      if (work_begins != nullptr) work_begins = work_ends = nullptr;
      if (!used.empty()) used.clear();
    }
    // End must be called.
    bool watched() const { return signature != 0 || !used.empty(); }
  };

  // The time between two marks; blocks until they have passed.
  using Clock = std::function<absl::StatusOr<absl::Duration>(
      const TimeMark& from, const TimeMark& to)>;

  // `clock`: the device's, where it has one.
  explicit StepWatch(std::string device, Clock clock = nullptr)
      : device_(std::move(device)), clock_(std::move(clock)) {}

  bool on() const { return on_.load(); }
  // Before the first op. `add_live` calls its argument for every buffer that
  // lives: with what excludes new ones, so that of each one Alloc (told twice
  // is told once) or `add_live` tells, and without those that are marked as
  // freed, so that each other one's Free is told behind its mark.
  using AddLive = absl::FunctionRef<void(uint64_t buffer, Bytes bytes)>;
  void Start(absl::FunctionRef<void(AddLive)> add_live);

  // An op of a kind (steps::KindOf) begins that touches buffers. `now`: since a
  // fixed moment, without what the process has waited. `tight`: memory is, so
  // that it matters for how long the step's ops work. True when a known step
  // begins with it.
  bool Begin(absl::Duration now, uint64_t kind, const steps::Touch* touches,
             size_t count, bool tight, Op* op);
  // The op's buffers are not pinned by it any more.
  void End(Op* op, absl::Duration now);
  // `op` may be null: outside of ops.
  void Alloc(uint64_t buffer, Bytes bytes, Op* op);
  void Free(uint64_t buffer);

  // What metsd should know, at `now` as in Begin.
  std::vector<v1::ClientMessage> Report(absl::Duration now);
  // metsd knows nothing.
  void Forget();

  // Follows a plan instead of the one before, whenever its step repeats, until
  // metsd is told of another one. Gives the step's program.
  // FAILED_PRECONDITION: the plan is not for the program that was sent last,
  // and none is followed.
  absl::StatusOr<steps::StepProgram> Follow(const v1::Plan& plan,
                                            PlanSink* sink);
  void Unfollow();

  // BufferReport.logical of a buffer: 0 while metsd does not have the program.
  uint32_t LogicalOf(uint64_t buffer);
  // Changes with the meaning of these.
  uint64_t version();

 private:
  bool sent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return recorder_.program() != nullptr &&
           sent_program_ == recorder_.program_number();
  }
  // Whether the program's work takes clearly less time than metsd was told.
  bool Faster() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return sent() && recorder_.program()->duration < 0.9 * sent_duration_;
  }
  // Of the repetition that has just ended. Blocks until the device has done its
  // work.
  void TakeWorkTimes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GuideBegin(const steps::Touch* touches, size_t count, Op* op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddProgram(std::vector<v1::ClientMessage>* messages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillDigest(absl::Duration now, v1::StepDigest* digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Work {
    uint32_t op;  // In its repetition.
    TimeMark begins, ends;
  };

  const std::string device_;
  const Clock clock_;
  std::atomic<bool> on_{false};
  absl::Mutex mutex_;
  steps::StepRecorder recorder_ ABSL_GUARDED_BY(mutex_);
  std::vector<Work> work_ ABSL_GUARDED_BY(mutex_);  // Of the repetition now...
  uint32_t lap_ ABSL_GUARDED_BY(mutex_) = 0;        // ...which is this one.
  std::unique_ptr<PlanGuide> guide_ ABSL_GUARDED_BY(mutex_);  // Of the plan.
  // Threads read the clock before they come here.
  absl::Duration latest_ ABSL_GUARDED_BY(mutex_);
  absl::Duration step_began_ ABSL_GUARDED_BY(mutex_);
  bool stirred_ ABSL_GUARDED_BY(mutex_) = false;  // Ops since the last digest.
  uint64_t sent_program_ ABSL_GUARDED_BY(mutex_) = 0;  // Its number.
  absl::Duration sent_duration_ ABSL_GUARDED_BY(mutex_);
  uint64_t digest_signature_ ABSL_GUARDED_BY(mutex_) = 0;
  steps::ReportPacer pacer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_STEP_WATCH_H_
