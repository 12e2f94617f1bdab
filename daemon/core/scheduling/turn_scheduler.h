// TurnScheduler: which jobs may compute on the devices.
#ifndef METS_DAEMON_CORE_SCHEDULING_TURN_SCHEDULER_H_
#define METS_DAEMON_CORE_SCHEDULING_TURN_SCHEDULER_H_

#include <cstdint>
#include <limits>
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

struct TurnDevice {
  std::string name;
  Bytes pool;
  double bus_bytes_per_second = 10e9;
};

struct TurnOptions {
  std::vector<TurnDevice> devices;
  double moving_share = 0.02;  // Of the time, for exchanges.
  absl::Duration max_wait = absl::Seconds(30);
  absl::Duration order_timeout = absl::Seconds(5);
  absl::Duration fixed_quantum;  // See CoreConfig.
};

// Opens and closes the gates of jobs.
//
// Modes, a device's. kFree while the working sets of the jobs that compute fit
// together: nobody is told anything. kTurns when what persists of all and what
// is ephemeral of one fit: jobs compute step by step, one after the other (or
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
// A turn is its job's on all the devices where it has one: on those that are
// not kFree, and that its processes use, which are some of one process or some
// of several. The processes may wait for each other within a step. So a turn
// has ended when all of them have said so; a job of several is stopped at a
// step's end, if its steps are known; and where nothing has been heard of it
// for longer than a step, those that wait at their gates go on to the end of
// another step: others may not end theirs without them (catch-up). For the same
// reason, jobs of several processes have turns from the beginning, for as long
// as they are new (kNewFor) and their needs are not known: one that waits for
// memory within a step may be what others, whose ops pin memory, wait for.
//
// Order. One, of all jobs. Who has waited for nearly max_wait; then the higher
// priority; then the least device time ÷ weight (stride scheduling, Waldspurger
// and Weihl 1995; who was away starts at the present minimum), on the device
// where it has most. Nobody passes who goes first on all its devices, but for
// what ends before that one is expected to have them all. The device is kept
// for a moment for a job that is due to come back and goes before those that
// wait; a lower class gets it only for what ends before a higher one is
// expected back, or, for a moment, once it has waited for half of max_wait.
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

  // REQUIRES: a device.
  explicit TurnScheduler(TurnOptions options);

  // Shares take so much of the pool, whoever computes.
  void SetShared(size_t device, Bytes shared) {
    devices_[device].pool = options_.devices[device].pool - shared;
  }
  // Orders' identifiers go on behind `last`.
  void SkipOrders(OrderId last) { ids_.Skip(last); }
  // Exactly these sessions take part from now on.
  void Update(absl::Time now, const std::vector<TurnFacts>& facts);
  // The session's gate is open now, whatever it was told (its stream broke).
  void Forget(SessionId session);
  // Unknown sessions, unknown devices and answers to older orders change
  // nothing.
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
    size_t device;
    absl::Duration waited;
    bool turn = true;  // False: it got the device for itself.
  };
  std::vector<Given> TakeGiven() { return std::exchange(given_, {}); }

  // Turns and quanta that have ended.
  struct Over {
    JobKey job;
    size_t device;
    absl::Duration waited;
    absl::Duration had;
  };
  std::vector<Over> TakeOver() { return std::exchange(over_, {}); }

  // When the session may compute next, as far as is known: InfinitePast when
  // a gate of it is open.
  absl::Time NotBefore(SessionId session) const;
  // Its gate is closed, and an op of it waits there.
  bool WaitsAtGate(SessionId session, size_t device) const;

  SharingMode mode(size_t device) const { return devices_[device].mode; }
  // Jobs do not compute at once because copies took their time.
  bool thrashed(size_t device) const { return devices_[device].thrashed; }
  int64_t turns_total(size_t device) const { return devices_[device].turns; }
  int64_t quanta_total(size_t device) const { return devices_[device].quanta; }
  // Null when the job takes no turns on the device.
  const TurnParty* Find(const JobKey& job, size_t device) const;
  // Where a turn of the party is one.
  std::vector<size_t> TurnDevices(const TurnParty& party) const;

  // That jobs with turns fit together, and that nobody waits beyond the bound.
  // INTERNAL with what does not hold.
  absl::Status Check(absl::Time now) const;

 private:
  using Phase = TurnParty::Phase;

  // One that jobs share.
  struct Device {
    explicit Device(const TurnDevice& device)
        : pool(device.pool), thrash(device.bus_bytes_per_second) {}

    Bytes pool;  // For which jobs take turns.
    ThrashMeter thrash;
    SharingMode mode = SharingMode::kFree;
    absl::Time mode_since = absl::InfinitePast();
    bool several_classes = false;  // Of those that are active.
    bool thrashed = false;         // What took the device out of kFree.
    bool outgrown = false;         // Quanta came because turns did not fit.
    double virtual_time = 0;
    int64_t turns = 0;
    int64_t quanta = 0;
  };
  // What those that wait want of a device.
  struct Demand {
    bool somebody = false;  // Who goes first on all its devices.
    bool blocked = false;   // It does not fit here.
    int highest = std::numeric_limits<int>::min();  // Priority.
  };

  // Null when there is none; the first when the name is empty.
  TurnMember* FindMember(SessionId session, const std::string& device,
                         TurnParty** party, size_t* index);
  void Join(const TurnFacts& facts);
  // What runs of it waits for what those use who compute: its own turn, which
  // is to end, has ended, and it waits for the next. Not for a gated one: what
  // that holds stays until its section ends.
  void Starve(TurnParty& party, TurnMember& member);
  // Those of whom leaves(device, session) says so.
  template <typename Leaves>
  void Leave(Leaves leaves);
  void SetPaused(const JobKey& job, TurnParty& party, bool paused);
  // True when `time` has come; else it is looked at again then.
  bool Due(absl::Time time);
  bool fixed() const { return options_.fixed_quantum > absl::ZeroDuration(); }
  bool Active(const TurnParty& party) const;
  // Its gates on the device follow orders.
  bool Ordered(const TurnParty& party, size_t device) const {
    return party.paused || devices_[device].mode != SharingMode::kFree;
  }
  bool OrderedAnywhere(const TurnParty& party) const;
  // Its turns are on the device.
  bool TakesTurns(const TurnParty& party, size_t device) const {
    return Ordered(party, device) && party.On(device) != nullptr;
  }
  // predicate(device, part) holds for one of them.
  template <typename Predicate>
  bool OnSome(const TurnParty& party, Predicate predicate) const;
  // Both take turns on some device.
  bool Meet(const TurnParty& a, const TurnParty& b) const;
  // Of all devices where a turn of it is one.
  bool Known(const TurnParty& party) const;
  bool InMode(const TurnParty& party, SharingMode mode) const;

  // Modes (sharing_mode.cc).
  void ChooseMode(size_t device);
  SharingMode WantedMode(size_t device, int active) const;
  // Also whether they are of several classes.
  int CountActive(size_t device);
  void LookForThrash();
  bool SeveralGated(size_t device) const;
  // Its needs are not known, and it is taken to need all.
  bool Presumed(size_t device, const TurnParty& party) const;
  // Beside jobs of higher classes, whose needs are known, it has never had more
  // than they leave.
  bool HasFitted(size_t device, const TurnParty& party) const;
  // What the job counts for where working sets are added up.
  Bytes WorkingSet(size_t device, const TurnParty& party) const;
  Bytes Persistent(size_t device) const;
  void ChangeMode(size_t device, SharingMode mode);
  // From now on, jobs take turns there.
  void BeginTurns(size_t device);
  // Opens its gates on the device for good.
  void SetFree(const JobKey& job, TurnParty& party, size_t device);
  // After SetFree.
  void Settle(TurnParty& party);

  // Order and room (turn_order.cc).
  // In order.
  std::vector<std::pair<const JobKey, TurnParty>*> Waiting();
  bool Before(const TurnParty& a, const TurnParty& b) const;
  // How far it is ahead of who has had least.
  double Lead(const TurnParty& party) const;
  absl::Duration AgedAfter(const TurnParty& party) const;
  bool Aged(const TurnParty& party) const;
  // The longest turn, as long as somebody waits.
  absl::Duration Cap(const TurnParty& party) const;
  absl::Duration TurnLength(const TurnParty& party) const;
  // When it makes room for a higher class.
  absl::Time YieldsAt(const TurnParty& party) const;
  absl::Duration MovingTime(size_t device, Bytes bytes) const;
  // What it needs beside the others while it computes.
  Bytes Room(size_t device, const TurnParty& party) const;
  bool FitsOn(size_t device, const TurnParty& party,
              const TurnParty* also = nullptr) const;
  // On all its devices.
  bool Fits(const TurnParty& party, const TurnParty* also = nullptr) const;
  // How long it would have the device.
  absl::Duration RunTime(const TurnParty& party) const;
  // What has been given to it is expected to end then.
  absl::Time EndsAt(const TurnParty& party) const;
  // When those that are in its way have ended.
  absl::Time BeginsAt(const TurnParty& party) const;
  // How long the device is kept for it when it is due to come back.
  static absl::Duration KeptAtMost(const TurnParty& party);
  // Whether the device is kept for somebody who goes before `next`.
  bool KeptFor(const TurnParty& next);
  std::vector<Demand> Demands();
  void RaiseVirtualTime();

  // Turns (turn_giving.cc).
  void CloseWhatIsOver();
  void CloseWhatNoLongerFits();
  void OpenWhatFits();
  void Open(const JobKey& job, TurnParty& party);
  // A process that was idle goes on, if its job's turn can be one there.
  bool OpenLate(TurnParty& party, size_t device, TurnMember& member);
  // True while those that wait may have to go on so that others can end.
  bool CatchUp(TurnParty& party);
  absl::Duration Patience(const TurnParty& party) const;
  // At their steps' ends, the jobs that have a turn there.
  void CloseOthers(const TurnParty& party, size_t device);
  void Close(TurnParty& party, GateMoment moment);
  // How long after the last word its end is waited for.
  absl::Duration EndsWithin(const TurnParty& party) const;
  // The most that it may have the device after it was told to close.
  absl::Duration LastsAfterOrder(const TurnParty& party) const;
  void End(TurnParty& party);
  void LearnCost(TurnParty& party, absl::Duration stalled);
  // What beginning a quantum costs: as measured, else as the bus says.
  static absl::Duration ExchangeCost(const TurnParty& party);
  void EndIfAllHave(TurnParty& party);
  void Send(TurnMember& member, bool open, GateMoment moment,
            absl::Duration idle);
  // How long its quantum may see no op.
  absl::Duration IdleQuantum(const TurnParty& party) const;
  // As its party has the device.
  void SendOpen(const TurnParty& party, TurnMember& member);
  void Book(size_t device);
  // What it has there is a turn from now on.
  void Give(const JobKey& job, const TurnParty& party, size_t device);

  const TurnOptions options_;
  std::vector<Device> devices_;
  std::map<JobKey, TurnParty> parties_;
  IdCounter<OrderId> ids_;
  absl::Time now_ = absl::InfinitePast();
  absl::Time next_ = absl::InfiniteFuture();
  std::vector<GateOrder> orders_;
  std::vector<Given> given_;
  std::vector<Over> over_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_TURN_SCHEDULER_H_
