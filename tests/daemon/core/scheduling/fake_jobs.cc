#include "tests/daemon/core/scheduling/fake_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace mets::core {
namespace {
constexpr int kOps = 10;
constexpr int kMeetingOp = 5;
constexpr absl::Duration kReport = absl::Milliseconds(200);

std::string NameOf(const FakeJobs::Job& job) {
  return "host" + std::to_string(job.spec.device);
}
}  // namespace

TurnOptions SmallDevices(int count) {
  TurnOptions options;
  for (int i = 0; i < count; ++i) {
    options.devices.push_back({"host" + std::to_string(i), MiB(1000),
                               static_cast<double>(MiB(10000).count())});
  }
  return options;
}

FakeJobSpec Spec(const std::string& name, int peak, int persistent) {
  FakeJobSpec spec;
  spec.name = name;
  spec.peak = MiB(peak);
  spec.persistent = MiB(persistent);
  return spec;
}

double Seconds(const FakeJobs::Job& job) {
  return absl::ToDoubleSeconds(job.computed);
}

FakeJobs::FakeJobs(TurnOptions options) : turns_(std::move(options)) {}

FakeJobs::Job& FakeJobs::Add(const FakeJobSpec& spec) {
  jobs_.push_back(std::make_unique<Job>());
  Job& job = *jobs_.back();
  job.spec = spec;
  job.session = SessionId(++last_session_);
  job.at = now_;
  Tell();
  if (spec.known) ReportNeed(job);
  Tell();
  return job;
}

void FakeJobs::ReportNeed(const Job& job) {
  turns_.OnNeed({job.session, NameOf(job), job.spec.peak, job.spec.persistent,
                 job.spec.compute});
}

void FakeJobs::Remove(Job& job) {
  jobs_.erase(std::find_if(jobs_.begin(), jobs_.end(),
                           [&](const auto& j) { return j.get() == &job; }));
  Tell();
}

void FakeJobs::Pause(const std::string& name, bool pause) {
  if (pause) {
    paused_.insert(name);
  } else {
    paused_.erase(name);
  }
  Tell();
}

void FakeJobs::Reconnect(Job& job) {
  turns_.Forget(job.session);
  job.gate = Job::Gate::kFree;
  job.wanting = false;
  job.at = now_;
  Tell();
  if (job.spec.known) ReportNeed(job);
  Tell();
}

FakeJobs::Job* FakeJobs::Find(SessionId session) {
  for (auto& job : jobs_) {
    if (job->session == session) return job.get();
  }
  return nullptr;
}

size_t FakeJobs::TakeMostComputing() {
  return std::exchange(most_computing_, 0);
}

size_t FakeJobs::TakeMostOn(size_t device) {
  return std::exchange(most_on_[device], 0);
}

// Facts, and what comes of them.
void FakeJobs::Tell() {
  std::vector<TurnFacts> facts;
  for (const auto& job : jobs_) {
    TurnFacts f;
    f.session = job->session;
    f.device = job->spec.device;
    f.job = {DomainId(1), job->spec.name};
    f.priority = job->spec.priority;
    f.weight = job->spec.weight;
    f.limit = job->spec.limit;
    f.gated = job->spec.gated;
    f.resident = job->spec.peak - job->swapped;
    f.swapped = job->swapped;
    f.moved = moved[job->spec.name];
    f.waited = waited[job->spec.name];
    f.paused = paused_.count(job->spec.name) > 0;
    f.last_active = job->computing ? now_ : job->last_op;
    facts.push_back(f);
  }
  turns_.Update(now_, facts);
  for (int round = 0; round < 100; ++round) {
    const std::vector<GateOrder> orders = turns_.Advance(now_);
    if (orders.empty()) break;
    std::set<SessionId> told;
    for (const GateOrder& order : orders) {
      EXPECT_TRUE(told.insert(order.session).second)
          << "what is told at once may arrive at once: nothing is done between";
      Follow(order);
    }
  }
  EXPECT_GT(turns_.next_deadline(), now_);
  const absl::Status status = turns_.Check(now_);
  EXPECT_TRUE(status.ok()) << status;
}

void FakeJobs::Follow(const GateOrder& order) {
  Job* job = Find(order.session);
  if (job == nullptr || job->silent) return;
  EXPECT_EQ(order.device, NameOf(*job));
  ++job->orders;
  job->order = order.order;
  job->idle = order.idle;
  using Gate = Job::Gate;
  if (order.open) {
    const bool was_open = job->gate == Gate::kFree;
    job->gate = order.idle == absl::ZeroDuration() ? Gate::kFree
                : order.moment == GateMoment::kNow ? Gate::kQuantum
                                                   : Gate::kTurn;
    job->opened = now_;
    job->stalled = absl::ZeroDuration();
    if (job->gate == Gate::kQuantum && last_quantum_ != job->session) {
      last_quantum_ = job->session;
      job->lacks = job->spec.exchange;
    }
    if (!was_open) job->idle_since = now_;
    if (job->wanting) {
      job->longest_wait = std::max(job->longest_wait, now_ - job->wanted);
      StartOp(*job);
    }
  } else if (job->gate == Gate::kClosed) {
    EndTurn(*job, false);
  } else if (order.moment == GateMoment::kStepEnd) {
    job->gate =
        job->ops == 0 && !job->computing ? Gate::kClosed : Gate::kClosing;
    if (job->gate == Gate::kClosed) EndTurn(*job, true);
  } else {
    job->gate = Gate::kClosed;
    if (!job->computing) EndTurn(*job, false);
  }
}

void FakeJobs::EndTurn(Job& job, bool step_end) {
  job.gate = Job::Gate::kClosed;
  TurnEnded ended;
  ended.session = job.session;
  ended.device = NameOf(job);
  ended.order = job.order;
  ended.computed = std::max(absl::ZeroDuration(), job.idle_since - job.opened);
  ended.step_end = step_end;
  ended.stalled = job.stalled;
  turns_.OnEnded(now_, ended);
  if (job.wanting) {
    turns_.OnWanted(now_, {job.session, NameOf(job), job.order});
  }
}

void FakeJobs::StartOp(Job& job) {
  job.wanting = false;
  job.computing = true;
  job.stalled += job.lacks;
  job.at = now_ + job.spec.compute / kOps +
           std::exchange(job.lacks, absl::ZeroDuration());
  if (job.spec.meets && job.ops == kMeetingOp) Meet(job);
}

bool FakeJobs::Met(const Job& other, const Job& job) {
  if (other.spec.name != job.spec.name || other.steps > job.steps) return true;
  return other.steps == job.steps && (other.ops > kMeetingOp || other.meeting);
}

void FakeJobs::Meet(Job& job) {
  job.meeting = true;
  job.at = absl::InfiniteFuture();
  for (const auto& other : jobs_) {
    if (!Met(*other, job)) return;
  }
  for (auto& other : jobs_) {
    if (other->spec.name != job.spec.name || !other->meeting) continue;
    other->meeting = false;
    other->at = now_ + job.spec.compute / kOps;
  }
}

void FakeJobs::Event(Job& job) {
  using Gate = Job::Gate;
  if (!job.computing) {
    // The next op is due.
    if (job.stopped) {
      job.at = absl::InfiniteFuture();
    } else if (job.gate == Gate::kClosed) {
      job.at = absl::InfiniteFuture();
      if (job.wanting) return;
      job.wanting = true;
      job.wanted = now_;
      turns_.OnWanted(now_, {job.session, NameOf(job), job.order});
    } else {
      StartOp(job);
    }
    return;
  }
  job.computing = false;
  job.idle_since = now_;
  job.last_op = now_;
  job.computed += job.spec.compute / kOps;
  const bool step_end = ++job.ops == kOps;
  job.at = now_;
  if (step_end) {
    job.ops = 0;
    ++job.steps;
    job.at = now_ + job.spec.input;
  }
  if (job.silent) return;
  if (job.gate == Gate::kClosed ||
      (step_end && (job.gate == Gate::kTurn || job.gate == Gate::kClosing))) {
    EndTurn(job, step_end);
  }
}

void FakeJobs::Run(absl::Duration time) {
  const absl::Time end = now_ + time;
  absl::Time report = now_ + kReport;
  for (;;) {
    absl::Time next = std::min({end, report, turns_.next_deadline()});
    for (const auto& job : jobs_) {
      next = std::min(next, job->at);
      if (job->gate == Job::Gate::kTurn || job->gate == Job::Gate::kQuantum) {
        if (!job->computing) next = std::min(next, job->idle_since + job->idle);
      }
    }
    now_ = std::max(now_, next);
    if (now_ >= end) return;
    if (now_ >= report) report = now_ + kReport;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      Job& job = *jobs_[i];
      if (job.at <= now_) Event(job);
      const bool counted =
          job.gate == Job::Gate::kTurn || job.gate == Job::Gate::kQuantum;
      if (counted && !job.computing && job.idle_since + job.idle <= now_ &&
          !job.silent) {
        EndTurn(job, false);
      }
    }
    size_t computing = 0;
    for (const auto& job : jobs_) computing += job->computing;
    most_computing_ = std::max(most_computing_, computing);
    std::map<size_t, std::set<std::string>> on;
    for (const auto& job : jobs_) {
      if (job->computing) on[job->spec.device].insert(job->spec.name);
    }
    for (const auto& [device, names] : on) {
      most_on_[device] = std::max(most_on_[device], names.size());
    }
    Tell();
  }
}

double Jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace mets::core
