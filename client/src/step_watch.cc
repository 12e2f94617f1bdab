#include "client/src/step_watch.h"

#include <algorithm>
#include <utility>

namespace mets::client {
namespace {

// Keeps parts of programs far below 1 MiB: numbers take at most 10 bytes.
constexpr size_t kNumbersPerPart = 50000;

// As StepOp in session.proto says.
uint32_t Encode(const steps::Access& access) {
  return access.buffer * 4 + static_cast<uint32_t>(access.kind);
}

void AddOp(const steps::StepOp& from, v1::StepProgram* part) {
  v1::StepOp* op = part->add_ops();
  op->set_start_us(absl::ToInt64Microseconds(from.start));
  op->set_busy_us(absl::ToInt64Microseconds(from.busy));
  for (const steps::Access& access : from.accesses) {
    op->add_accesses(Encode(access));
  }
  for (uint32_t buffer : from.frees) op->add_frees(buffer);
}

}  // namespace

void StepWatch::Start(absl::FunctionRef<void(AddLive)> add_live) {
  absl::MutexLock lock(&mutex_);
  if (on_.exchange(true)) return;
  add_live([this](uint64_t buffer, Bytes bytes) {
    mutex_.AssertHeld();
    recorder_.Alloc(buffer, bytes);
  });
}

bool StepWatch::Begin(absl::Duration now, uint64_t kind,
                      const steps::Touch* touches, size_t count, bool tight,
                      Op* op) {
  absl::MutexLock lock(&mutex_);
  latest_ = std::max(latest_, now);
  op->signature = recorder_.SignatureOf(kind, touches, count);
  op->id = recorder_.OpBegin(latest_, op->signature, touches, count);
  stirred_ = true;
  const steps::StepPoint& point = recorder_.point();
  if (point.boundary) {
    step_began_ = latest_;
    TakeWorkTimes();
    work_.clear();
    lap_ = op->id.lap;
  }
  op->timed = recorder_.Times(op->id, tight);
  if (guide_ != nullptr) GuideBegin(touches, count, op);
  return point.boundary && recorder_.program() != nullptr;
}

void StepWatch::End(Op* op, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  latest_ = std::max(latest_, now);
  recorder_.OpEnd(op->id, latest_);
  if (op->work_ends != nullptr) {
    if (op->id.lap == lap_) {
      work_.push_back(
          {op->id.index, std::move(op->work_begins), std::move(op->work_ends)});
    }
    op->work_begins = op->work_ends = nullptr;
  }
  op->signature = 0;
  if (op->used.empty()) return;
  if (guide_ != nullptr) guide_->Used(op->used);
  op->used.clear();
}

void StepWatch::TakeWorkTimes() {
  const steps::StepProgram* program = recorder_.program();
  if (program == nullptr || work_.empty()) return;
  std::vector<absl::Duration> busy(program->ops.size(),
                                   absl::InfiniteDuration());
  for (const Work& work : work_) {
    const absl::StatusOr<absl::Duration> time = clock_(work.begins, work.ends);
    if (!time.ok() || work.op >= busy.size()) return;
    busy[work.op] = *time;
  }
  recorder_.AddWorkTimes(busy);
}

void StepWatch::Alloc(uint64_t buffer, Bytes bytes, Op* op) {
  if (!on()) return;
  absl::MutexLock lock(&mutex_);
  if (op == nullptr || op->signature == 0) {
    recorder_.Alloc(buffer, bytes);
  } else {
    recorder_.Alloc(buffer, bytes, op->id, op->signature);
  }
  if (guide_ == nullptr) return;
  if (op != nullptr) {
    op->used.push_back({buffer, true});
  } else {
    guide_->Used({{buffer, true}});
  }
}

void StepWatch::Free(uint64_t buffer) {
  if (!on()) return;
  absl::MutexLock lock(&mutex_);
  recorder_.Free(buffer);
}

absl::StatusOr<steps::StepProgram> StepWatch::Follow(const v1::Plan& plan,
                                                     PlanSink* sink) {
  absl::MutexLock lock(&mutex_);
  guide_ = nullptr;
  if (!sent() || recorder_.program()->signature != plan.step_signature()) {
    return absl::FailedPreconditionError(
        "the plan is not for the step that repeats now");
  }
  guide_ = std::make_unique<PlanGuide>(recorder_, plan, sink);
  return *recorder_.program();
}

void StepWatch::Unfollow() {
  absl::MutexLock lock(&mutex_);
  guide_ = nullptr;
}

void StepWatch::GuideBegin(const steps::Touch* touches, size_t count, Op* op) {
  guide_->Begin();
  for (size_t i = 0; i < count; ++i) op->used.push_back({touches[i].key});
}

void StepWatch::AddProgram(std::vector<v1::ClientMessage>* messages) {
  const steps::StepProgram& program = *recorder_.program();
  const auto add_part = [&] {
    v1::StepProgram* part = messages->emplace_back().mutable_step_program();
    part->set_device(device_);
    part->set_step_signature(program.signature);
    part->set_duration_us(absl::ToInt64Microseconds(program.duration));
    return part;
  };
  v1::StepProgram* part = add_part();
  part->set_first(true);
  size_t numbers = 0;
  const auto count = [&](size_t more) {
    if (numbers > 0 && numbers + more > kNumbersPerPart) {
      part = add_part();
      numbers = 0;
    }
    numbers += more;
  };
  for (const steps::StepBuffer& buffer : program.buffers) {
    count(2);
    part->add_buffer_bytes(buffer.size.count());
    part->add_persistent(buffer.persistent);
  }
  for (const steps::StepOp& op : program.ops) {
    count(3 + op.accesses.size() + op.frees.size());
    AddOp(op, part);
  }
  part->set_last(true);
  sent_program_ = recorder_.program_number();
  sent_duration_ = program.duration;
}

void StepWatch::FillDigest(absl::Duration now, v1::StepDigest* digest) {
  const steps::StepSummary& summary = recorder_.summary();
  digest->set_device(device_);
  digest->set_steps(recorder_.point().steps);
  if (!sent()) return;
  digest->set_step_signature(recorder_.program()->signature);
  digest->set_duration_us(absl::ToInt64Microseconds(summary.duration));
  digest->set_since_begin_us(
      absl::ToInt64Microseconds(std::max(now, step_began_) - step_began_));
  digest->set_working_set_bytes(summary.working_set.count());
  digest->set_peak_live_bytes(summary.peak_live.count());
  digest->set_persistent_bytes(summary.persistent_live.count());
  digest->set_largest_op_bytes(summary.largest_op.count());
}

std::vector<v1::ClientMessage> StepWatch::Report(absl::Duration now) {
  std::vector<v1::ClientMessage> messages;
  absl::MutexLock lock(&mutex_);
  const bool another = recorder_.program() != nullptr && !sent();
  const bool due = another ? pacer_.step_due(now) : pacer_.progress_due(now);
  if (!stirred_ || !due) return messages;
  if (another) {
    if (guide_ != nullptr) guide_->End();
    guide_ = nullptr;
    AddProgram(&messages);
    pacer_.ToldStep(now);
  } else if (Faster()) {
    AddProgram(&messages);
  }
  const uint64_t signature = sent() ? recorder_.program()->signature : 0;
  // That there is no step is said once.
  if (signature == 0 && digest_signature_ == 0) return messages;
  digest_signature_ = signature;
  FillDigest(now, messages.emplace_back().mutable_step_digest());
  stirred_ = false;
  pacer_.ToldProgress(now);
  return messages;
}

void StepWatch::Forget() {
  absl::MutexLock lock(&mutex_);
  sent_program_ = digest_signature_ = 0;
  pacer_ = steps::ReportPacer();
}

uint32_t StepWatch::LogicalOf(uint64_t buffer) {
  absl::MutexLock lock(&mutex_);
  if (!sent()) return 0;
  const std::optional<uint32_t> logical = recorder_.LogicalOf(buffer);
  return logical.has_value() ? *logical + 1 : 0;
}

uint64_t StepWatch::version() {
  absl::MutexLock lock(&mutex_);
  return sent() ? recorder_.version() : 0;
}

}  // namespace mets::client
