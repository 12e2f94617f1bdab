// TurnParty: a job as one that takes turns.
#ifndef METS_DAEMON_CORE_SCHEDULING_TURN_PARTY_H_
#define METS_DAEMON_CORE_SCHEDULING_TURN_PARTY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/types.h"

namespace mets::core {

// What the core knows of one session that may compute on a device.
struct TurnFacts {
  SessionId session;
  size_t device = 0;
  std::pair<DomainId, std::string> job;
  int priority = 0;
  int weight = 1;
  bool gated = false;  // Its program announces no ops.
  bool asked = false;  // It has, for memory.
  Bytes limit;         // Of the job, on each device; zero: none.
  Bytes resident;      // Without what it caches; with what `starves` is about.
  Bytes swapped;
  Bytes moved;            // Evicted and restored, ever.
  absl::Duration waited;  // For memory and for what is swapped, ever.
  bool paused = false;    // Its job is.
  bool starves = false;   // An op of it has waited for memory for long.
  absl::Time last_active = absl::InfinitePast();
};

// One process of it, on one device.
struct TurnMember {
  TurnFacts facts;
  bool known = false;  // Its step has been measured.
  Bytes peak, persistent;
  absl::Duration step;
  OrderId order;       // The last one sent; none: its gate was never touched.
  bool open = false;   // So that one says.
  bool ended = false;  // It has said that its gate is closed and nothing runs.
  bool step_end = false;    // Then it was between two steps.
  bool wants = false;       // An op of it waits since then.
  absl::Duration computed;  // In the turn that is ending.
  absl::Duration stalled;   // Likewise.
  // The most that was live in this window of kLately and in the one before.
  Bytes most_live, most_live_before;
  absl::Time window = absl::InfinitePast();  // When it began.

  Bytes live() const { return facts.resident + facts.swapped; }
  // The most that was live in the last seconds: within a step whose need is not
  // known, what is live now says little.
  Bytes lately() const { return std::max(most_live, most_live_before); }
  // To be called with all new facts.
  void NoteLive(absl::Time now);
};

// Its processes on one device, and what they need there.
struct TurnPart {
  std::map<SessionId, TurnMember> members;
  Bytes limit;            // Zero: none.
  bool has_turn = false;  // When the party is running.
  Bytes booked;           // What it needed when the last turn was given.
  double pass = 0;        // Device seconds ÷ weight.
  Bytes most_live;        // That it has had, so far.

  // It has, or wanted, something of the device. Programs attach devices that
  // they never use.
  bool used() const;

  // Sums over the members. A step is known when all that have memory know it.
  bool known() const;
  bool gated() const;  // One of them is.
  Bytes live() const;
  Bytes resident() const;
  Bytes swapped() const;
  Bytes moved() const;
  absl::Duration waited() const;  // The most of one.
  // Within the limit. Where it is not known, what was live lately...
  Bytes peak() const;
  Bytes persistent() const;  // ...and what is now.
  Bytes Limited(Bytes bytes) const {
    return limit.is_zero() ? bytes : std::min(bytes, limit);
  }
  Bytes ephemeral() const { return peak() - persistent(); }
  absl::Duration step() const;  // Zero when it is not known.
};

// Plain data. Processes of one job get and lose their turns together, on all
// devices where jobs take turns.
struct TurnParty {
  enum class Phase {
    kFree,     // Its gates are open, and nobody counts.
    kOpen,     // It has a turn or a quantum.
    kClosing,  // It was told to close; something may still run.
    kClosed,
  };

  std::map<size_t, TurnPart> parts;  // By device.
  int priority = 0;
  int weight = 1;
  bool paused = false;  // Its gates are closed, or close, in every mode.
  Phase phase = Phase::kFree;
  bool quantum = false;  // What it has, or had last, is no single step.
  absl::Time opened = absl::InfinitePast();
  bool given = false;       // What it has, or is ending, is a turn or quantum,
  absl::Duration waited;    // for which it waited so long.
  absl::Duration exchange;  // To bring back what it lacked then.
  // What an exchange costs it, as its quanta have shown.
  absl::Duration cost = absl::InfiniteDuration();
  absl::Duration wish;  // Of its quantum: what makes the exchange pay.
  GateMoment moment = GateMoment::kNow;  // When it was told to close.
  // The last word from it about its turn, or to it.
  absl::Time last_word = absl::InfinitePast();
  int catch_ups = 0;  // In the turn: see TurnScheduler.
  absl::Time ended = absl::InfinitePast();
  absl::Duration gap = absl::InfiniteDuration();  // From ended to wanted.
  bool wants = false;
  absl::Time wanted = absl::InfinitePast();
  absl::Time began = absl::InfiniteFuture();  // To compute.
  absl::Time last_seen = absl::InfinitePast();

  bool running() const {
    return phase == Phase::kOpen || phase == Phase::kClosing;
  }
  // No op of it begins before its next turn.
  bool stopped() const {
    return phase == Phase::kClosed ||
           (phase == Phase::kClosing && moment == GateMoment::kNow);
  }
  bool in_quantum() const { return phase == Phase::kOpen && quantum; }
  bool waiting() const { return wants && phase == Phase::kClosed && !paused; }
  // It is paused, and nothing of it runs any more.
  bool rests() const { return paused && !running(); }
  // Null: no process of it uses the device.
  const TurnPart* On(size_t device) const;
  bool gated() const;
  absl::Duration step() const;  // The longest; zero when none is known.
  // They may wait for each other within a step.
  size_t processes() const;
  // One each, on each device that the job uses.
  size_t gates() const;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_TURN_PARTY_H_
