// MoveBurst: buffers that move one after the other, for one event.
#ifndef METS_DAEMON_CORE_EVENTS_MOVE_BURST_H_
#define METS_DAEMON_CORE_EVENTS_MOVE_BURST_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::core {

// What a session's reports say of moves in one direction. A burst is over with
// the first report that names no more of them, or after a second.
struct MoveBurst {
  static constexpr absl::Duration kLongest = absl::Seconds(1);

  Bytes bytes;
  int64_t buffers = 0;
  int64_t told = 0;  // Of the buffers, by the reports before this one.
  absl::Time begin;  // The last report before the first move.
  absl::Time end;    // The report of the last one.

  void Add(Bytes size) {
    bytes += size;
    ++buffers;
  }

  // A whole report has been added, at `now`; the one before was at `last`.
  // True when the burst is over: note it, and start anew.
  bool EndReport(absl::Time now, absl::Time last) {
    if (buffers == 0) return false;
    const bool grew = buffers > told;
    if (told == 0) begin = last;
    if (grew) end = now;
    told = buffers;
    return !grew || now - begin >= kLongest;
  }
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_EVENTS_MOVE_BURST_H_
