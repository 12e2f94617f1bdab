// StepDetector: finds a training's repeating step in its sequence of ops.
#ifndef METS_COMMON_STEPS_STEP_DETECTOR_H_
#define METS_COMMON_STEPS_STEP_DETECTOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/bytes.h"
#include "common/steps/known_steps.h"
#include "common/steps/op_history.h"
#include "common/steps/step_content.h"

namespace mets::steps {

// Where an op is.
struct StepPoint {
  uint64_t signature = 0;  // Of the step that repeats now; 0: none is known.
  uint32_t length = 0;     // Ops in one repetition, more or less.
  // Since the repetition began. Ops may have changed places, and a repetition
  // may have some more ops than `length`.
  uint32_t position = 0;
  bool boundary = false;  // A repetition begins here...
  // ...and the stretch since the last boundary was a whole one.
  bool whole = false;
  uint64_t steps = 0;  // Repetitions so far, of any step.
};

// Fed one op after the other: a signature (of what is the same in each
// repetition: name, sizes and kinds of its accesses) and the bytes that live
// when it begins.
//
// How. An op that occurs once in a step sees stretches of equal content between
// its occurrences, whatever is inside of them, and one that occurs up to four
// times sees them between every second, third or fourth (op_history.h). Two
// equal ones in a row, and they are the step. From then on every op whose
// stretch equals the step supports it; one of them is the anchor, at which
// repetitions begin: the supporter with the least live bytes. When the anchor
// does not come in time, the others decide: one of them becomes the anchor, or
// the step is lost.
//  * Ops that change places (parallel threads) do not change a content unless
//    they cross the end of a stretch; therefore a sixteenth may differ
//    (step_content.h). Comparing exactly, and hoping for an anchor that nothing
//    ever crosses, fails when an input pipeline runs beside the step.
//  * Inner loops repeat too. Those that build up or take down what lives (the
//    time steps of an LSTM's two passes) are no step, because a step ends with
//    what it began; others break at the loop's end, and are believed less from
//    then on (known_steps.h). Loops may be reported before the step has
//    repeated twice.
//  * A step seen before is found again at its first repetition.
//
// O(1) amortised an op. Bounded: at most kMostSignatures are remembered; when
// there are more, those of the last kMostOps ops stay, and none if they are
// more than half: such a sequence has no step. Not thread-safe; pure.
class StepDetector {
 public:
  static constexpr uint32_t kMostOps = 1 << 17;     // In a step.
  static constexpr size_t kMostSignatures = 14336;  // 7/8 of a power of two.

  // `op` is not 0.
  StepPoint Observe(uint64_t op, Bytes live);

  size_t signatures() const { return index_.size(); }

 private:
  // A shorter stretch has to repeat more often.
  static constexpr uint32_t kFewestOps = 32;

  // An op within the present repetition.
  struct Place {
    uint64_t op = 0;
    uint32_t position = 0;
    Bytes live = Bytes(INT64_MAX);
  };
  struct Repetition {
    Bytes first_live;
    LiveRange live;
    Place least;  // The supporter with the least live bytes.
    Place first;  // The first supporter that is not the anchor.
    uint32_t supporters = 0;
  };
  struct Following {
    uint64_t signature = 0;
    Stretch step;
    uint64_t anchor = 0;
    uint32_t offset = 0;     // Of the anchor from the boundary.
    uint64_t anchor_at = 0;  // Where it came last.
    uint32_t position = 0;
    uint32_t repeats = 0;
    uint32_t supporters = 0;  // In the last repetition.
    Repetition now;
    LiveRange live;
    bool measured = false;  // The boundary has been chosen once.
    uint64_t best = 0;      // Supporter with the least live bytes before.
    // The boundary moves to the next op of this kind, where about this lives.
    uint64_t rotate = 0;
    Bytes rotate_live;
  };

  OpHistory& Note(uint64_t op, Bytes live);
  OpHistory& HistoryOf(uint64_t op);
  void Forget();

  // No step is known.
  bool Search(OpHistory* history, Stretch* step, uint32_t* repeats);
  void Follow(uint64_t op, const Stretch& step, uint32_t repeats,
              StepPoint* point);

  // False when the step is lost.
  bool Continue(uint64_t op, const OpHistory& history, StepPoint* point);
  bool Supports(const OpHistory& history) const;
  void NoteSupport(uint64_t op);
  // Whether the op is the anchor, in its place.
  bool Anchored(uint64_t op) const;
  // The anchor has not come.
  bool Reanchor(StepPoint* point);
  void Begin(uint32_t position, StepPoint* point);
  void ChooseRotation();
  bool RotatesAt(uint64_t op) const;
  void Rotate(uint64_t op, StepPoint* point);
  void Lose();

  absl::flat_hash_map<uint64_t, uint32_t> index_;  // In histories_.
  std::vector<OpHistory> histories_;
  std::vector<uint32_t> unused_;
  OpMark now_;
  uint32_t epoch_ = 1;  // Counts the times that a step was found or lost.
  uint64_t steps_ = 0;
  LiveRange since_lost_;
  KnownSteps known_;
  std::optional<Following> following_;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_DETECTOR_H_
