// Jobs with processes on several devices, which have their turns there
// together.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/core/scheduling/fake_jobs.h"

namespace mets::core {
namespace {

// A process on each of the devices, which meet in every step.
std::vector<FakeJobs::Job*> AddGang(FakeJobs& jobs, FakeJobSpec spec,
                                    const std::vector<size_t>& devices) {
  spec.meets = true;
  std::vector<FakeJobs::Job*> processes;
  for (size_t device : devices) {
    spec.device = device;
    processes.push_back(&jobs.Add(spec));
  }
  return processes;
}

// Two such jobs, of which one fits on the devices at a time.
struct TwoGangs {
  explicit TwoGangs(FakeJobSpec spec,
                    const std::vector<size_t>& devices = {0, 1}) {
    spec.name = "a";
    a = AddGang(jobs, spec, devices);
    spec.name = "b";
    b = AddGang(jobs, spec, devices);
  }
  // Steps of both together.
  int64_t steps() const { return a[0]->steps + b[0]->steps; }
  FakeJobs jobs{SmallDevices(2)};
  std::vector<FakeJobs::Job*> a, b;
};

void ExpectOneAtATime(TwoGangs& two, absl::Duration time) {
  two.jobs.Run(absl::Seconds(1));
  two.jobs.TakeMostOn(0);
  two.jobs.TakeMostOn(1);
  const int64_t before = two.steps();
  two.jobs.Run(time);
  EXPECT_EQ(two.jobs.TakeMostOn(0), 1u);
  EXPECT_LE(two.jobs.TakeMostOn(1), 1u);
  const absl::Duration step = two.a[0]->spec.compute;
  EXPECT_GE(two.steps() - before, 0.95 * (time / step));
  EXPECT_GE(Jain({Seconds(*two.a[0]), Seconds(*two.b[0])}), 0.98);
  EXPECT_NEAR(two.a[0]->steps, two.a[1]->steps, 1);
}

TEST(GangTest, JobsOnTwoDevicesTakeTheirStepsOnBothAtOnce) {
  TwoGangs two(Spec("", 950, 30));
  ExpectOneAtATime(two, absl::Minutes(1));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kTurns);
  EXPECT_EQ(two.jobs.turns().mode(1), SharingMode::kTurns);
  EXPECT_NEAR(two.jobs.turns().turns_total(1), two.steps(), 20);
}

TEST(GangTest, JobsOnTwoDevicesHaveTheirQuantaOnBothAtOnce) {
  TwoGangs two(Spec("", 950, 700));
  for (auto* job : {two.a[0], two.a[1], two.b[0], two.b[1]}) {
    job->swapped = MiB(700);
  }
  ExpectOneAtATime(two, absl::Minutes(2));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kQuanta);
}

TEST(GangTest, ProcessesOfOneDeviceMeetInEachStep) {
  TwoGangs two(Spec("", 470, 15), {0, 0});
  ExpectOneAtATime(two, absl::Minutes(1));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kTurns);
}

TEST(GangTest, ProcessesOfOneDeviceHaveTheirQuantaTogether) {
  TwoGangs two(Spec("", 470, 350), {0, 0});
  ExpectOneAtATime(two, absl::Minutes(2));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kQuanta);
}

// What an op of one has pinned on one device, where it waits for the others,
// could be what the other job's waits for, and the other way round.
TEST(GangTest, JobsOfSeveralNewProcessesDoNotComputeAtOnce) {
  FakeJobSpec spec = Spec("", 100, 30);
  spec.known = false;
  TwoGangs two(spec);
  two.jobs.Run(absl::Seconds(2));
  two.jobs.TakeMostOn(0);
  two.jobs.Run(absl::Minutes(4));
  EXPECT_EQ(two.jobs.TakeMostOn(0), 1u);
  // They have no steps, and they fit.
  two.jobs.Run(absl::Minutes(2));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kFree);
  EXPECT_EQ(two.jobs.turns().mode(1), SharingMode::kFree);
}

// The memory of only one device is short.
TEST(GangTest, ADeviceWhereAllFitIsLeftAlone) {
  FakeJobs jobs(SmallDevices(2));
  FakeJobSpec spec = Spec("a", 950, 30);
  spec.meets = true;
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  spec = Spec("a", 200, 10);
  spec.meets = true;
  spec.device = 1;
  FakeJobs::Job& a1 = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b1 = jobs.Add(spec);
  jobs.Run(absl::Minutes(1));
  EXPECT_EQ(jobs.turns().mode(1), SharingMode::kFree);
  EXPECT_EQ(a1.orders, 0);
  EXPECT_EQ(b1.orders, 0);
  EXPECT_GE(a.steps + b.steps, 570);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.98);
}

// Those of one device each compute beside each other.
TEST(GangTest, JobsThatDoNotMeetComputeAtOnce) {
  FakeJobs jobs(SmallDevices(2));
  const FakeJobSpec gang = Spec("gang", 950, 30);
  const auto processes = AddGang(jobs, gang, {0, 1});
  FakeJobs::Job& x = jobs.Add(Spec("x", 950, 30));
  FakeJobSpec spec = Spec("y", 950, 30);
  spec.device = 1;
  FakeJobs::Job& y = jobs.Add(spec);
  jobs.Run(absl::Minutes(2));
  const double gang_seconds = Seconds(*processes[0]);
  EXPECT_GE(Jain({gang_seconds, Seconds(x), Seconds(y)}), 0.98);
  EXPECT_GE(gang_seconds + Seconds(x), 115);
  EXPECT_GE(gang_seconds + Seconds(y), 115);
}

// What it had before there was anybody on the other device is no debt there.
TEST(GangTest, AJobThatComesToASecondDeviceHasItsShare) {
  FakeJobs jobs(SmallDevices(2));
  FakeJobs::Job& x = jobs.Add(Spec("x", 950, 30));
  FakeJobs::Job& z = jobs.Add(Spec("z", 950, 30));
  jobs.Run(absl::Minutes(5));
  FakeJobSpec spec = Spec("y", 950, 30);
  spec.device = 1;
  FakeJobs::Job& y = jobs.Add(spec);
  const auto gang = AddGang(jobs, Spec("gang", 950, 30), {1, 0});
  const double x_before = Seconds(x), z_before = Seconds(z);
  jobs.Run(absl::Minutes(1));
  EXPECT_GE(Seconds(*gang[0]), 18);
  EXPECT_GE(Seconds(x) - x_before, 18);
  EXPECT_GE(Seconds(z) - z_before, 18);
  EXPECT_GE(Seconds(y), 35);
}

TEST(GangTest, AGangOfAHigherClassGoesFirstOnBothDevices) {
  FakeJobs jobs(SmallDevices(2));
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.priority = 1;
  const auto high = AddGang(jobs, spec, {0, 1});
  const auto low = AddGang(jobs, Spec("low", 950, 30), {0, 1});
  jobs.Run(absl::Minutes(5));
  EXPECT_GE(Seconds(*high[0]), 0.95 * 300);
  EXPECT_LE(low[0]->longest_wait, absl::Seconds(31));
  EXPECT_GT(low[0]->steps, 5);
}

TEST(GangTest, ADeadProcessOfAGangBlocksNobody) {
  TwoGangs two(Spec("", 950, 30));
  two.jobs.Run(absl::Milliseconds(3050));
  two.jobs.Remove(*two.a[1]);
  const int64_t before = two.b[0]->steps;
  two.jobs.Run(absl::Minutes(1));
  // The other one waits for it for ever, in a turn that ends in time.
  EXPECT_GE(two.b[0]->steps - before, 50);
}

TEST(GangTest, AGangIsPausedOnAllItsDevices) {
  TwoGangs two(Spec("", 950, 30));
  two.jobs.Run(absl::Seconds(3));
  two.jobs.Pause("a", true);
  two.jobs.Run(absl::Seconds(15));
  const int64_t paused = two.a[0]->steps, before = two.b[0]->steps;
  two.jobs.Run(absl::Seconds(30));
  EXPECT_EQ(two.a[0]->steps, paused);
  EXPECT_GE(two.b[0]->steps - before, 280);
  two.jobs.Pause("a", false);
  two.jobs.Run(absl::Seconds(30));
  EXPECT_GE(two.a[0]->steps - paused, 120);
  EXPECT_GE(two.a[1]->steps - paused, 120);
}

// A process that ends its steps late finds the others between two of theirs
// when the quantum ends, or in the next one.
TEST(GangTest, QuantaEndWhereverTheProcessesAre) {
  for (int offset : {0, 20, 50, 80}) {
    SCOPED_TRACE(offset);
    FakeJobSpec spec = Spec("", 950, 700);
    TwoGangs two(spec);
    for (auto* gang : {&two.a, &two.b}) {
      (*gang)[1]->spec.input = absl::Milliseconds(offset);
      for (FakeJobs::Job* job : *gang) job->swapped = MiB(100);
    }
    two.jobs.Run(absl::Minutes(2));
    EXPECT_LE(two.a[0]->longest_wait, absl::Seconds(10));
    EXPECT_LE(two.b[1]->longest_wait, absl::Seconds(10));
    const absl::Duration step = spec.compute + absl::Milliseconds(offset);
    EXPECT_GE(two.steps(), 0.8 * (absl::Minutes(2) / step));
  }
}

// Session 1 of job "a" and session 2 of job "b" use both devices.
TEST(GangTest, AProcessHasItsTurnOnAllItsDevices) {
  TurnScheduler turns(SmallDevices(2));
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  std::vector<TurnFacts> all;
  for (size_t device : {0, 1}) {
    for (uint64_t id : {1, 2}) {
      TurnFacts facts;
      facts.session = SessionId(id);
      facts.device = device;
      facts.job = {DomainId(1), id == 1 ? "a" : "b"};
      facts.last_active = now;
      all.push_back(facts);
    }
  }
  turns.Update(now, all);
  for (const char* device : {"host0", "host1"}) {
    for (uint64_t id : {1, 2}) {
      turns.OnNeed(
          {SessionId(id), device, MiB(900), MiB(30), absl::Milliseconds(100)});
    }
  }
  std::map<std::pair<uint64_t, std::string>, GateOrder> told;
  const auto advance = [&] {
    for (GateOrder& order : turns.Advance(now)) {
      told[{order.session.value(), order.device}] = order;
    }
  };
  const auto end = [&](uint64_t id, const char* device) {
    TurnEnded ended;
    ended.session = SessionId(id);
    ended.device = device;
    ended.order = told[{id, device}].order;
    ended.step_end = true;
    turns.OnEnded(now, ended);
    advance();
  };
  advance();
  ASSERT_EQ(told.size(), 4u);
  for (const char* device : {"host0", "host1"}) {
    EXPECT_TRUE((told[{1, device}].open));
    EXPECT_FALSE((told[{2, device}].open));
    end(2, device);
  }
  turns.OnWanted(now, {SessionId(2), "host1", told[{2, "host1"}].order});
  end(1, "host0");
  EXPECT_FALSE((told[{2, "host0"}].open));
  EXPECT_FALSE((told[{2, "host1"}].open));
  end(1, "host1");
  EXPECT_TRUE((told[{2, "host0"}].open));
  EXPECT_TRUE((told[{2, "host1"}].open));
}

// Every other step the processes do not meet: one may be a step ahead.
TEST(GangTest, WhoIsAStepAheadWaitsForTheOthersTurn) {
  TwoGangs two(Spec("", 950, 30));
  two.jobs.Run(absl::Seconds(1));
  for (auto* gang : {&two.a, &two.b}) ++(*gang)[1]->steps;
  const int64_t before = two.steps();
  two.jobs.Run(absl::Minutes(1));
  EXPECT_GE(two.steps() - before, 400);
}

}  // namespace
}  // namespace mets::core
