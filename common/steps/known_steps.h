// KnownSteps: the steps found so far, and which of them to believe in.
#ifndef METS_COMMON_STEPS_KNOWN_STEPS_H_
#define METS_COMMON_STEPS_KNOWN_STEPS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_content.h"

namespace mets::steps {

// Least and most live bytes over some ops.
struct LiveRange {
  Bytes least = Bytes(INT64_MAX);
  Bytes most;

  void Add(Bytes live) {
    least = std::min(least, live);
    most = std::max(most, live);
  }
  void Add(const LiveRange& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

struct KnownStep {
  uint64_t signature = 0;
  Stretch stretch;
  uint64_t first_op = 0;  // The op at which a repetition begins...
  Bytes first_live;       // ...and what lives there.
  LiveRange own;          // While it was followed.
  LiveRange seen;         // Since it was found.
  int losses = 0;
  uint32_t last = 0;        // Repetitions in a row, the last time...
  bool regular = false;     // ...and about as many the time before.
  uint32_t longest = 0;     // Most repetitions in a row.
  uint32_t outer = 0;       // Length of the longest step found later.
  uint64_t outer_lost = 0;  // Where a longer one was lost last.
  int runs = 0;             // Times it came and went without being believed.
  uint64_t last_run = 0;    // Where it came last.
  uint64_t last_found = 0;  // Where it was followed last.
};

// What repeats for a while and then no more is an inner loop or a step of a
// phase (training, evaluation), and nothing but what follows tells them apart.
// So a step that has ended is believed at once when it comes again if it has
// lasted and its live bytes reach from where all were least to where they were
// nearly most: loops are inside of what is live in a step. So is one that ended
// for the first few times, after different numbers of repetitions, as by a
// disturbance. Others have to repeat clearly more often than they ever did,
// until three times no longer step was found meanwhile, or all longer steps are
// long gone.
//
// Holds kMost steps and forgets the one that was followed least recently. Not
// thread-safe.
class KnownSteps {
 public:
  static constexpr size_t kMost = 16;

  // Null when no such step is known.
  KnownStep* Find(const Stretch& stretch);
  // Whether a step of about this length is.
  bool KnowsLength(uint64_t length) const {
    for (const KnownStep& step : steps_) {
      if (NearlyAsLong(length, step.stretch.length)) return true;
    }
    return false;
  }

  // How many equal repetitions in a row make `step` believed at op `now`.
  // `present`: live bytes since the last step was lost.
  static uint32_t RepeatsNeeded(const KnownStep& step, uint64_t now,
                                const LiveRange& present);

  // It has repeated twice at `now`, though it may not be believed.
  static void NoteRun(KnownStep* step, uint64_t now);

  // It is followed from `now` on. Valid until the next call.
  KnownStep* Found(const Stretch& stretch, uint64_t now,
                   const LiveRange& since_lost);
  // It has ended after `repeats` in a row.
  void Lost(uint64_t signature, uint64_t now, uint64_t first_op,
            Bytes first_live, uint32_t repeats, const LiveRange& own);

 private:
  static constexpr uint32_t kLasting = 16;
  static constexpr int kPatience = 3;
  static constexpr int kDisturbances = 4;

  std::vector<KnownStep> steps_;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_KNOWN_STEPS_H_
