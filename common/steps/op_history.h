// OpHistory: the last few times that one op occurred in a sequence.
#ifndef METS_COMMON_STEPS_OP_HISTORY_H_
#define METS_COMMON_STEPS_OP_HISTORY_H_

#include <cstdint>

#include "common/base/bytes.h"
#include "common/steps/step_content.h"

namespace mets::steps {

// Where an op occurred, and sums of everything up to it, itself included.
struct OpMark {
  StepContent prefix;
  uint64_t at = 0;
  Bytes live;   // When it began.
  Bytes churn;  // Bytes allocated plus bytes freed.
};

// An op that occurs `apart` times in each step sees equal stretches between
// each of its occurrences and the one `apart` before.
class OpHistory {
 public:
  static constexpr uint32_t kMostApart = 4;

  void Add(const OpMark& mark) {
    last_ = (last_ + 1) % kMarks;
    marks_[last_] = mark;
    count_ = count_ < kMarks ? count_ + 1 : kMarks;
  }
  const OpMark& last() const { return marks_[last_]; }

  // Ops in the stretch from the occurrence `apart` before the last to the last;
  // 0 when there is none.
  uint64_t Length(uint32_t apart) const {
    return count_ > apart ? last().at - Back(apart).at : 0;
  }
  // REQUIRES: Length(apart) > 0, and fits.
  Stretch StretchOf(uint32_t apart) const { return Between(0, apart); }

  // Whether the stretch ends with about what lived where it began: a sixteenth
  // of what was allocated and freed meanwhile may remain.
  bool EndsAsItBegan(uint32_t apart) const;

  // Notes whether the last stretch equals the one before. What is noted starts
  // anew in each `epoch`.
  void Compare(uint32_t epoch, uint64_t longest);
  // By what Compare has noted: how many equal stretches follow one another, and
  // how many occurrences they are apart. 1 is any stretch.
  uint32_t repeats() const { return apart_ == 0 ? 0 : 1 + equal_ / apart_; }
  uint32_t apart() const { return apart_; }
  // This occurrence has made it one more.
  bool just_repeated() const { return apart_ != 0 && equal_ % apart_ == 0; }

 private:
  static constexpr uint32_t kMarks = kMostApart + 2;

  const OpMark& Back(uint32_t n) const {
    return marks_[(last_ + kMarks - n) % kMarks];
  }
  Stretch Between(uint32_t newer, uint32_t older) const {
    return {Back(newer).prefix - Back(older).prefix,
            static_cast<uint32_t>(Back(newer).at - Back(older).at)};
  }
  bool Repeats(uint32_t apart, uint64_t longest) const;

  OpMark marks_[kMarks];
  uint32_t last_ = 0;
  uint32_t count_ = 0;
  uint32_t epoch_ = 0;
  uint32_t apart_ = 0;
  uint32_t equal_ = 0;  // Comparisons that were equal, in a row.
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_OP_HISTORY_H_
