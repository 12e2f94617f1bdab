// FakeJobs: processes that train behind gates, in simulated time.
#ifndef METS_TESTS_DAEMON_CORE_SCHEDULING_FAKE_JOBS_H_
#define METS_TESTS_DAEMON_CORE_SCHEDULING_FAKE_JOBS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/scheduling/turn_scheduler.h"

namespace mets::core {

// Pools of 1,000 MiB, so that sizes are per mille of one, and 10,000 MiB/s.
TurnOptions SmallDevices(int count);
inline TurnOptions SmallDevice() { return SmallDevices(1); }

struct FakeJobSpec {
  std::string name;
  Bytes peak, persistent;
  absl::Duration compute = absl::Milliseconds(100);  // Of a step.
  absl::Duration input = absl::Microseconds(100);    // Between steps.
  // What its first op waits for copies, after another job had a quantum.
  absl::Duration exchange;
  int priority = 0;
  int weight = 1;
  Bytes limit;  // Zero: none.
  bool known = true;
  bool gated = false;
  size_t device = 0;
  // In the middle of a step it waits, in an op, for all of its job.
  bool meets = false;
};

// With sizes in MiB.
FakeJobSpec Spec(const std::string& name, int peak, int persistent);

// A process each, of one job if they have one name; a step is ten ops. A
// process follows its orders as libmets does, and a message takes no time.
class FakeJobs {
 public:
  explicit FakeJobs(TurnOptions options);

  struct Job {
    FakeJobSpec spec;
    SessionId session;
    enum class Gate { kFree, kTurn, kQuantum, kClosing, kClosed };
    Gate gate = Gate::kFree;
    OrderId order;
    absl::Duration idle;
    bool computing = false;  // An op runs, until `at`.
    bool meeting = false;    // It waits for the other processes.
    bool wanting = false;    // An op waits at the gate.
    bool silent = false;     // Says nothing more, and computes on.
    bool stopped = false;    // Its program does nothing any more.
    int ops = 0;             // Of the step.
    absl::Time at;           // Its next event.
    absl::Time opened, idle_since, wanted, last_op;
    absl::Duration lacks;    // Its next op waits so long for copies.
    absl::Duration stalled;  // Since the gate opened.
    Bytes swapped;           // As reported.
    int orders = 0;
    // Results.
    absl::Duration computed;
    int64_t steps = 0;
    absl::Duration longest_wait;
  };

  Job& Add(const FakeJobSpec& spec);
  void Remove(Job& job);
  void Run(absl::Duration time);
  // As an operator does.
  void Pause(const std::string& name, bool pause);
  // As a stream that breaks and comes back.
  void Reconnect(Job& job);

  TurnScheduler& turns() { return turns_; }
  absl::Time now() const { return now_; }
  // The most jobs whose ops ran at the same time since the last call.
  size_t TakeMostComputing();
  // The most jobs of which a process computed on the device.
  size_t TakeMostOn(size_t device);
  std::map<std::string, Bytes> moved;  // Facts.
  std::map<std::string, absl::Duration> waited;

 private:
  void Tell();
  void Follow(const GateOrder& order);
  void Event(Job& job);
  void StartOp(Job& job);
  // Whether it is where `job` meets the others, or behind.
  static bool Met(const Job& other, const Job& job);
  void Meet(Job& job);
  void EndTurn(Job& job, bool step_end);
  void ReportNeed(const Job& job);
  Job* Find(SessionId session);

  TurnScheduler turns_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::vector<std::unique_ptr<Job>> jobs_;
  uint64_t last_session_ = 0;
  SessionId last_quantum_;
  size_t most_computing_ = 0;
  std::map<size_t, size_t> most_on_;
  std::set<std::string> paused_;
};

// That the job has computed.
double Seconds(const FakeJobs::Job& job);

// Jain's index of shares: 1 when all are equal.
double Jain(const std::vector<double>& shares);

}  // namespace mets::core

#endif  // METS_TESTS_DAEMON_CORE_SCHEDULING_FAKE_JOBS_H_
