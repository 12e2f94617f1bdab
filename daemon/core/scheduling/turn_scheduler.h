// TurnScheduler: which jobs may compute on a device.
#ifndef METS_DAEMON_CORE_SCHEDULING_TURN_SCHEDULER_H_
#define METS_DAEMON_CORE_SCHEDULING_TURN_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/id_counter.h"
#include "daemon/core/scheduling/thrash_meter.h"
#include "daemon/core/scheduling/turn_party.h"
#include "daemon/core/types.h"

namespace mets::core {

struct TurnOptions {
  std::string device;
  Bytes pool;
  double bus_bytes_per_second = 10e9;
  double moving_share = 0.02;  // Of the time, for exchanges.
  absl::Duration max_wait = absl::Seconds(30);
  absl::Duration order_timeout = absl::Seconds(5);
  absl::Duration fixed_quantum;  // See CoreConfig.
};

// Opens and closes the gates of one device's jobs.
//
// Modes. kFree while the working sets of the jobs that compute fit together:
// nobody is told anything. kTurns when what persists of all and what is
// ephemeral of one fit: jobs compute step by step, one after the other (or
// several, while they fit), and no byte moves. kQuanta otherwise: a job
// computes for so long that what it waits for copies, as measured in its last
// quanta, is at most `moving_share` of that, and to the end of a step then.
// Jobs have quanta in both until their steps are known. Thrash (ThrashMeter)
// ends kFree where needs are not known. Among jobs of several classes nobody
// waits for thrash: in its first minutes (kNewFor), a job of unknown needs is
// taken to need the whole device (or its limit), so that a lower class waits at
// once, and then all that it has, swapped or not. One of a lower class is not
// taken so until it has once had more than the known needs of the others leave:
// where both fit, it gets to know its step beside them. A job whose program
// announces no ops is taken so beside any other, and for as long as its needs
// are not known: what it holds stays where it is until its section ends, so two
// such jobs that need more in the middle of their steps would wait for each
// other. For the same reason, such jobs count beside each other also while they
// do not compute: where gates are free, nobody sees a section begin.
//
// Order. Who has waited for nearly max_wait; then the higher priority; then the
// least device time ÷ weight (stride scheduling, Waldspurger and Weihl 1995;
// who was away starts at the present minimum). Nobody passes the head of that
// order. The device is kept for a moment for a job that is due to come back and
// goes before those that wait; a lower class gets it only for what ends before
// a higher one is expected back, or, for a moment, once it has waited for half
// of max_wait.
//
// A paused job has no turns: whatever the mode, its gates close and stay closed
// until it is resumed. Once nothing of it runs, it counts as away.
//
// What clients say is not trusted: a turn that is not reported as ended within
// order_timeout after it had to is taken as ended; for a program that announces
// no ops, max_wait, because its sections end where its steps do.
//
// Use: On... and Update as things happen, then Advance, which says what to
// send. Not thread-safe; pure: time comes in.
class TurnScheduler {
 public:
  using JobKey = std::pair<DomainId, std::string>;

  explicit TurnScheduler(TurnOptions options)
      : options_(std::move(options)),
        pool_(options_.pool),
        thrash_(options_.bus_bytes_per_second) {}

  // Shares take so much of the pool, whoever computes.
  void SetShared(Bytes shared) { pool_ = options_.pool - shared; }
  // Orders' identifiers go on behind `last`.
  void SkipOrders(OrderId last) { ids_.Skip(last); }
  // Exactly these sessions take part from now on.
  void Update(absl::Time now, const std::vector<TurnFacts>& facts);
  // The session's gate is open now, whatever it was told (its stream broke).
  void Forget(SessionId session);
  // Unknown sessions and answers to older orders change nothing.
  void OnNeed(const StepNeed& need);
  void OnWanted(absl::Time now, const TurnWanted& wanted);
  void OnEnded(absl::Time now, const TurnEnded& ended);

  // Decides; the orders to be sent.
  std::vector<GateOrder> Advance(absl::Time now);
  // When to Advance next; InfiniteFuture in kFree.
  absl::Time next_deadline() const { return next_; }

  // Turns and quanta that Advance has given, and how long their jobs waited.
  struct Given {
    JobKey job;
    absl::Duration waited;
    bool turn = true;  // False: it got the device for itself.
  };
  std::vector<Given> TakeGiven() { return std::exchange(given_, {}); }

  // Turns and quanta that have ended.
  struct Over {
    JobKey job;
    absl::Duration waited;
    absl::Duration had;
  };
  std::vector<Over> TakeOver() { return std::exchange(over_, {}); }

  // When the session may compute next, as far as is known: InfinitePast when
  // its gate is open.
  absl::Time NotBefore(SessionId session) const;
  // Its gate is closed, and an op of it waits there.
  bool WaitsAtGate(SessionId session) const;

  SharingMode mode() const { return mode_; }
  // Jobs do not compute at once because copies took their time.
  bool thrashed() const { return thrashed_; }
  int64_t turns_total() const { return turns_; }
  int64_t quanta_total() const { return quanta_; }
  // Null when none of the job's sessions takes part.
  const TurnParty* Find(const JobKey& job) const;

  // That jobs with turns fit together, and that nobody waits beyond the bound.
  // INTERNAL with what does not hold.
  absl::Status Check(absl::Time now) const;

 private:
  using Phase = TurnParty::Phase;

  TurnMember* FindMember(SessionId session, TurnParty** party);
  void Join(const TurnFacts& facts);
  void SetPaused(const JobKey& job, TurnParty& party, bool paused);
  // True when `time` has come; else it is looked at again then.
  bool Due(absl::Time time);
  bool fixed() const { return options_.fixed_quantum > absl::ZeroDuration(); }
  bool Active(const TurnParty& party) const;

  // Modes (sharing_mode.cc).
  void ChooseMode();
  SharingMode WantedMode(int active) const;
  // Also whether they are of several classes.
  int CountActive();
  void LookForThrash();
  bool SeveralGated() const;
  // Its needs are not known, and it is taken to need all.
  bool Presumed(const TurnParty& party) const;
  // Beside jobs of higher classes, whose needs are known, it has never had more
  // than they leave.
  bool HasFitted(const TurnParty& party) const;
  // What the job counts for where working sets are added up.
  Bytes WorkingSet(const TurnParty& party) const;
  Bytes Persistent() const;
  void ChangeMode(SharingMode mode);

  // Order and room (turn_order.cc).
  // In order.
  std::vector<std::pair<const JobKey, TurnParty>*> Waiting();
  bool Before(const TurnParty& a, const TurnParty& b) const;
  absl::Duration AgedAfter() const;
  bool Aged(const TurnParty& party) const;
  // The longest turn, as long as somebody waits.
  absl::Duration Cap(const TurnParty& party) const;
  absl::Duration TurnLength(const TurnParty& party) const;
  // When it makes room for a higher class.
  absl::Time YieldsAt(const TurnParty& party) const;
  absl::Duration MovingTime(Bytes bytes) const;
  // What it needs beside the others while it computes.
  Bytes Room(const TurnParty& party) const;
  bool Fits(const TurnParty& party, const TurnParty* also = nullptr) const;
  // Whether the device is kept for somebody who goes before `next`.
  bool KeptFor(const TurnParty& next);
  bool SomebodyAged() const;
  int64_t WaitingCount() const;
  void RaiseVirtualTime();

  void CloseWhatIsOver();
  void CloseWhatNoLongerFits();
  void OpenWhatFits();
  void Open(const JobKey& job, TurnParty& party);
  void Close(TurnParty& party, GateMoment moment);
  // How long after it was told to close its word is waited for.
  absl::Duration EndsWithin(const TurnParty& party) const;
  void End(TurnParty& party);
  void LearnCost(TurnParty& party, absl::Duration stalled);
  // What beginning a quantum costs: as measured, else as the bus says.
  static absl::Duration ExchangeCost(const TurnParty& party);
  void EndIfAllHave(TurnParty& party);
  void NoteOver(TurnParty& party);
  void Send(TurnMember& member, bool open, GateMoment moment,
            absl::Duration idle);
  // How long its quantum may see no op.
  absl::Duration IdleQuantum(const TurnParty& party) const;
  // As its party has the device.
  void SendOpen(const TurnParty& party, TurnMember& member);

  const TurnOptions options_;
  Bytes pool_;  // For which jobs take turns.
  ThrashMeter thrash_;
  std::map<JobKey, TurnParty> parties_;
  SharingMode mode_ = SharingMode::kFree;
  absl::Time mode_since_ = absl::InfinitePast();
  bool several_classes_ = false;  // Of those that are active.
  bool thrashed_ = false;         // What took the device out of kFree.
  double virtual_time_ = 0;
  int64_t turns_ = 0;
  int64_t quanta_ = 0;
  IdCounter<OrderId> ids_;
  absl::Time now_ = absl::InfinitePast();
  absl::Time next_ = absl::InfiniteFuture();
  std::vector<GateOrder> orders_;
  std::vector<Given> given_;
  std::vector<Over> over_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_TURN_SCHEDULER_H_
