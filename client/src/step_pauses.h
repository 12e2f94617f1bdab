// StepPauses: where in its steps a program leaves its device idle.
#ifndef METS_CLIENT_SRC_STEP_PAUSES_H_
#define METS_CLIENT_SRC_STEP_PAUSES_H_

#include <cstdint>
#include <deque>

#include "absl/functional/function_ref.h"
#include "common/base/bytes.h"

namespace mets::client {

// How many ops have begun is counted modulo 2^31.
inline constexpr uint32_t kOpCountMask = 0x7fffffff;
inline uint32_t OpsBehind(uint32_t begun, uint32_t ops) {
  return (begun + ops) & kOpCountMask;
}
inline uint32_t OpsApart(uint32_t from, uint32_t to) {
  return (to - from) & kOpCountMask;
}

// Learns behind which op a turn should end (docs/decisions/0018). Where a
// program pauses behind exactly the same ops in three steps, and hardly more
// lives there than at the step's end, it ends there; else, once two steps had
// the same number of ops, behind the last one.
//
// `begun` counts ops since the program's beginning, `ops` those of the step.
// Not thread-safe.
class StepPauses {
 public:
  static constexpr uint32_t kNever = ~uint32_t{0};  // No such count.
  // A shorter time without an op is no pause: threads may take so long to meet.
  static constexpr int64_t kShortestNs = 200'000;

  // Behind so many ops the device was idle for about so long; `expected`: where
  // the turn should end. `live` says how much lives there.
  void Note(int64_t ns, uint32_t begun, uint32_t ops, bool expected,
            absl::FunctionRef<Bytes()> live);
  // Where the turn should end the device still computes: the program waits for
  // it there, and then goes on. REQUIRES: ends_at_pause().
  void NoteWait(uint32_t begun);
  // Returns where the next turn should end; kNever: that is not known.
  uint32_t EndStep(uint32_t begun, uint32_t ops, Bytes live);

  // What EndStep has returned is a pause.
  bool ends_at_pause() const { return ends_at_pause_; }
  // Two steps had a long pause at about the same place.
  bool last_long() const { return last_long_; }
  // So many ops of the step have begun, more or less, that it makes that pause.
  bool PausesLong(uint32_t ops) const;

 private:
  struct Pause {
    int64_t ns = 0;  // 0: there is none.
    uint32_t begun = 0;
    uint32_t ops = 0;
    bool expected = false;
    Bytes live;
  };
  struct DeviceWait {
    uint32_t at;     // Ops begun.
    uint32_t apart;  // Ops until the next one.
    int steps;       // That it is remembered for.
  };

  void MoveDeviceWaits(uint32_t begun);

  Pause longest_;  // Of the step...
  Pause last_;     // ...and of the last step.
  uint32_t last_ops_ = 0;
  uint32_t apart_ = 0;  // Ops from pause to pause; 0: not known.
  bool ends_at_pause_ = false;
  bool last_long_ = false;
  // No pauses: where the program waits for its device, the next time. Oldest
  // first. Where it once did need not be where it always does.
  std::deque<DeviceWait> device_waits_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_STEP_PAUSES_H_
