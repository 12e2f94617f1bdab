// MovePacer: how fast bytes may move for lower classes on a device.
#ifndef METS_DAEMON_CORE_MOVES_MOVE_PACER_H_
#define METS_DAEMON_CORE_MOVES_MOVE_PACER_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/moves/interference.h"

namespace mets::core {

// A class is a priority. For each class that computes there is a token bucket
// of bytes, which everything that moves for lower classes is taken from: it
// fills at the rate at which those copies cost the class `bound` of its time,
// as measured (Interference), but never below a twentieth of the bus, so that
// nobody starves. What has been ordered is not taken back: a bucket may be in
// debt, and nothing more is ordered until it is not.
//
// Not thread-safe; pure: times come in and never go back.
class MovePacer {
 public:
  MovePacer(double bound, double bus_bytes_per_second)
      : bound_(bound), bus_(bus_bytes_per_second) {}

  // Bytes have moved, or will, for classes below `high`, which computes.
  void Charge(absl::Time now, int high, Bytes bytes);
  // Whether any bucket above `low` is in debt: a cheap look.
  bool InDebt(absl::Time now, int low) const;
  // When moves for classes below `high` may go on: InfinitePast when at once.
  absl::Time FreeAt(absl::Time now, int high) const;
  // Bytes a second that may move below `high`.
  double Rate(int high) const;

  // A step, as a session of class `high` has reported it.
  struct Step {
    SessionId session;
    uint64_t signature = 0;  // 0: none repeats.
    int64_t steps = 0;       // So far.
    absl::Duration duration;
    bool alone = false;  // Nobody else computes now.
  };
  void OnStep(int high, const Step& step);
  void Forget(SessionId session);

 private:
  // What a session has told last.
  struct Told {
    Step step;
    double moved = 0;
  };
  struct Bucket {
    explicit Bucket(double bus) : interference(bus) {}
    double level = 0;  // Bytes.
    absl::Time filled = absl::InfinitePast();
    double moved = 0;  // Bytes, ever.
    Interference interference;
    std::map<SessionId, Told> told;
  };
  double RateOf(const Bucket& bucket) const;
  double LevelOf(const Bucket& bucket, absl::Time now) const;
  Bucket& Of(int high);

  const double bound_;
  const double bus_;
  std::map<int, Bucket> buckets_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_MOVES_MOVE_PACER_H_
