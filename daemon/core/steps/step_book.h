// StepBook: the training step of one session on one device.
#ifndef METS_DAEMON_CORE_STEPS_STEP_BOOK_H_
#define METS_DAEMON_CORE_STEPS_STEP_BOOK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/steps/step_program.h"
#include "daemon/core/types.h"

namespace mets::core {

// What the client says of its step, checked, and what follows from it for the
// buffers: when each will be used next. Times of ops are those of the program;
// where the session is in it, it says about once a second, and a session that
// has been silent for long is believed to use nothing.
//
// Not thread-safe. Times given never go back.
class StepBook {
 public:
  static constexpr size_t kMostOps = 1 << 17;
  static constexpr size_t kMostAccesses = 1 << 20;
  static constexpr size_t kMostBuffers = 1 << 20;

  // Takes a part of a program. Returns what is wrong with it, or "". Until the
  // last part is there, the step is not known.
  std::string Take(const StepSeen& seen);
  // Returns what is wrong with it, or "".
  std::string Take(absl::Time now, const StepProgress& progress);
  void Take(const StepNeed& need) { between_ = need.persistent; }
  // The session's stream has broken: it says everything anew.
  void Forget();

  // The step that repeats now; null when none does, or it is not known.
  const steps::StepProgram* program() const {
    return known() ? &program_ : nullptr;
  }
  // Counts the programs that have come.
  uint64_t version() const { return version_; }
  // The most that the program has live at once, in whole multiples of `unit`
  // for each buffer.
  Bytes Peak(Bytes unit) const;
  // Bytes that live between two repetitions and that the program does not know:
  // in other buffers, or in more than one for a logical buffer (what is loaded
  // steps ahead). Nothing when nobody has said.
  std::optional<Bytes> Beside() const;
  // Of the step that repeats now; 0: none does.
  uint64_t signature() const { return signature_; }
  // Repetitions so far, and how long the last one took (zero: none repeats).
  int64_t steps() const { return steps_; }
  absl::Duration duration() const { return duration_; }

  // When a buffer is used next, as BufferReport::logical names it;
  // InfiniteFuture when nothing says so. O(log uses).
  absl::Time NextUse(uint32_t logical, absl::Time now) const;

 private:
  bool known() const {
    return complete_ && signature_ != 0 && program_.signature == signature_;
  }
  // What is wrong with a part, or with its place among the others.
  std::string PartFault(const StepSeen& seen) const;
  // Whether the indexes of the whole program are in range.
  std::string IndexFault() const;
  void IndexUses();
  // Where the repetition is at `now`; InfiniteDuration when nobody knows.
  absl::Duration Phase(absl::Time now) const;

  steps::StepProgram program_;  // Whole, when complete_.
  bool complete_ = false;
  uint64_t version_ = 0;
  size_t accesses_ = 0;  // Of the parts so far.
  // Of buffer b: use_starts_[first_use_[b]] to [first_use_[b + 1]], ascending.
  std::vector<uint32_t> first_use_;
  std::vector<absl::Duration> use_starts_;
  std::optional<Bytes>
      between_;  // Bytes live between two repetitions, as told.

  uint64_t signature_ = 0;
  int64_t steps_ = 0;
  absl::Duration duration_;
  absl::Duration since_begin_;
  absl::Time told_ = absl::InfinitePast();
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STEPS_STEP_BOOK_H_
