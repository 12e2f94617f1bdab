#include "client/src/admission.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace mets::client {

Admission::~Admission() {
  for (Target& target : targets_) {
    target.buffer->wanted.fetch_sub(1, std::memory_order_relaxed);
  }
}

absl::Status Admission::Add(const mets_access& access) {
  Buffer* buffer = device_.table_->Find(access.address);
  if (buffer == nullptr || buffer->word.freed() ||
      buffer->word.phase() == Phase::kFree) {
    return absl::InvalidArgumentError("an address is in no live buffer");
  }
  TargetOf(buffer, access.address).write |= access.kind != METS_READ;
  return absl::OkStatus();
}

Admission::Target& Admission::TargetOf(Buffer* buffer, const void* address) {
  for (Target& target : targets_) {
    if (target.buffer == buffer) return target;
  }
  buffer->wanted.fetch_add(1, std::memory_order_relaxed);
  Target& target = targets_.emplace_back();
  target.buffer = buffer;
  target.address = address;
  return target;
}

void Admission::AddNew(Bytes bytes) {
  // Slabs are taken as they are needed.
  if (bytes < device_.slab_threshold_) return;
  new_ranges_.push_back(bytes.RoundUpTo(device_.granularity_));
}

absl::Status Admission::Run(absl::Time deadline) {
  const WaitClock::Wait wait(device_.waits_);
  std::optional<WaitClock::Wait> stall;
  missing_new_ = new_ranges_;
  bool token = unknown_ && device_.tight();
  for (int round = 0;;) {
    if (!stall.has_value() && SomethingAway()) stall.emplace(device_.stalls_);
    absl::Status status = PinResident();
    const bool have_token = op_->tokens > 0;
    const bool tries = status.ok() && (have_token || !token);
    const bool reserved = tries && Reserve();
    if (reserved) {
      absl::StatusOr<bool> complete = RestoreMissing();
      if (complete.ok() && *complete) {
        Finish();
        return absl::OkStatus();
      }
      status = complete.status();
      if (status.ok() && have_token) {
        ++round;
        continue;
      }
    }
    if (!status.ok()) {
      LetGo();
      return status;
    }
    if (!keeps()) LetGo();
    if (tries && !reserved) {
      const std::vector<Bytes> lacking = Lacking();
      const Bytes need =
          std::accumulate(lacking.begin(), lacking.end(), Bytes());
      if (device_.AwaitEviction(need, &demand_)) continue;
    }
    // What it needs beyond this is not known: it must not wait for that with
    // pins, beside another one that does.
    if (unknown_ || round++ >= kPatience) token = true;
    const absl::Time until = keeps() && !holds_pins_ ? SteadyNow() + kKeepFor
                                                     : absl::InfiniteFuture();
    status = Ask(deadline, until, token || holds_pins_);
    let_go_ = absl::IsResourceExhausted(status) && SteadyNow() >= until;
    if (!status.ok() && !let_go_) {
      LetGo();
      return status;
    }
  }
}

bool Admission::SomethingAway() const {
  return std::any_of(targets_.begin(), targets_.end(), [](const Target& t) {
    return !t.pinned && !IsResident(t.buffer->word.phase());
  });
}

absl::Status Admission::Drop(size_t target) {
  if (!again_) {
    return absl::InvalidArgumentError("an address is in no live buffer");
  }
  targets_[target].buffer->wanted.fetch_sub(1, std::memory_order_relaxed);
  targets_[target] = std::move(targets_.back());
  targets_.pop_back();
  return absl::OkStatus();
}

absl::Status Admission::PinResident() {
  const uint32_t now = CoarseNowMs();
  for (size_t i = targets_.size(); i > 0; --i) {
    Target& target = targets_[i - 1];
    if (target.pinned) continue;
    const Device::PinResult result = device_.PinOrWait(target.buffer);
    target.pinned = result == Device::PinResult::kPinned;
    if (result == Device::PinResult::kGone ||
        !target.buffer->Contains(target.address)) {
      if (target.pinned) device_.Unpin(target.buffer);
      METS_RETURN_IF_ERROR(Drop(i - 1));
      continue;
    }
    target.buffer->Touch(now);
  }
  return absl::OkStatus();
}

bool Admission::TakeGranted(Bytes size, ChunkSet* chunks) {
  for (size_t i = 0; i < granted_.size(); ++i) {
    if (granted_[i].range != size) continue;
    *chunks = std::move(granted_[i].chunks);
    granted_.erase(granted_.begin() + i);
    return true;
  }
  return false;
}

bool Admission::Reserve() {
  std::vector<MemoryNeed> needs;
  std::vector<Target*> missing;
  for (Target& target : targets_) {
    if (target.pinned || !target.chunks.empty()) continue;
    const Bytes size = target.buffer->range_size();
    if (TakeGranted(size, &target.chunks)) continue;
    missing.push_back(&target);
    needs.push_back({size, target.buffer});
  }
  std::vector<Bytes> still;
  {
    absl::MutexLock lock(&device_.mutex_);
    for (Bytes size : missing_new_) {
      ChunkSet chunks;
      if (TakeGranted(size, &chunks)) {
        op_->chunks.push_back({size, std::move(chunks)});
      } else if (Buffer* range = device_.cache_.TakeFit(size, op_->stream)) {
        op_->ranges.push_back(range);
      } else {
        still.push_back(size);
      }
    }
  }
  missing_new_ = std::move(still);
  for (Bytes size : missing_new_) needs.push_back({size});
  std::vector<ChunkSet> local;
  if (!needs.empty() && !device_.TakeLocally(needs, &local)) {
    shortfall_.clear();
    for (const MemoryNeed& need : needs) shortfall_.push_back(need.size);
    return false;
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    missing[i]->chunks = std::move(local[i]);
  }
  for (size_t i = missing.size(); i < local.size(); ++i) {
    op_->chunks.push_back({needs[i].size, std::move(local[i])});
  }
  missing_new_.clear();
  shortfall_.clear();
  return true;
}

absl::StatusOr<bool> Admission::RestoreMissing() {
  bool complete = true;
  for (size_t i = targets_.size(); i > 0; --i) {
    if (targets_[i - 1].pinned) continue;
    METS_ASSIGN_OR_RETURN(const bool done, RestoreOne(i - 1));
    complete &= done;
  }
  return complete;
}

absl::StatusOr<bool> Admission::RestoreOne(size_t index) {
  Target& target = targets_[index];
  Buffer* buffer = target.buffer;
  if (buffer->word.TryMove(Phase::kSwapped, Phase::kRestoring)) {
    METS_RETURN_IF_ERROR(device_.Restore(buffer, target.chunks));
    target.chunks.clear();
    target.pinned = true;
    return true;
  }
  // Another op was faster.
  switch (device_.PinOrWait(buffer)) {
    case Device::PinResult::kPinned:
      target.pinned = true;
      return true;
    case Device::PinResult::kSwapped:
      return false;
    case Device::PinResult::kGone:
      break;
  }
  {
    absl::MutexLock lock(&device_.mutex_);
    device_.PutIdle(target.chunks);
    target.chunks.clear();
  }
  METS_RETURN_IF_ERROR(Drop(index));
  return true;
}

std::vector<Bytes> Admission::Lacking() const {
  if (keeps()) return shortfall_;
  // Everything was let go: what is missing now and all that is new.
  std::vector<Bytes> ranges = new_ranges_;
  for (const Target& target : targets_) {
    if (target.buffer->word.phase() == Phase::kSwapped) {
      ranges.push_back(target.buffer->range_size());
    }
  }
  return ranges;
}

absl::Status Admission::Ask(absl::Time deadline, absl::Time until,
                            bool overdraft) {
  const std::vector<Bytes> ranges = Lacking();
  if (ranges.empty() && !(overdraft && op_->tokens == 0)) {
    return absl::OkStatus();
  }
  const bool pins = holds_pins_ || keeps();
  const WaitMode mode = !overdraft ? WaitMode::kPlain
                        : pins     ? WaitMode::kPinned
                                   : WaitMode::kToken;
  // That the daemon spares what is named.
  device_.ReportChanges(ReportScope::kAll);
  METS_ASSIGN_OR_RETURN(Grant grant,
                        device_.uplink_.Acquire(device_, ranges, deadline,
                                                {mode, op_->number, until}));
  if (grant.overdraft) op_->AddToken(grant.generation);
  for (size_t i = 0; i < grant.ranges.size(); ++i) {
    granted_.push_back({ranges[i], std::move(grant.ranges[i])});
  }
  return absl::OkStatus();
}

void Admission::LetGo() {
  {
    absl::MutexLock lock(&device_.mutex_);
    for (Buffer* range : op_->ranges) device_.PutIdle(range);
    for (ReservedChunks& reserved : op_->chunks) {
      device_.PutIdle(reserved.chunks);
    }
  }
  op_->ranges.clear();
  op_->chunks.clear();
  missing_new_ = new_ranges_;
  ReturnUnused();
  for (Target& target : targets_) {
    if (target.pinned) device_.Unpin(target.buffer);
    target.pinned = false;
  }
}

void Admission::ReturnUnused() {
  absl::MutexLock lock(&device_.mutex_);
  for (Target& target : targets_) {
    device_.PutIdle(target.chunks);
    target.chunks.clear();
  }
  for (ReservedChunks& reserved : granted_) {
    device_.PutIdle(reserved.chunks);
  }
  granted_.clear();
}

void Admission::Finish() {
  ReturnUnused();
  op_->reserved = !op_->ranges.empty() || !op_->chunks.empty();
  for (Target& target : targets_) {
    op_->AddPin(target.buffer, target.allocated);
    if (target.write) target.buffer->MarkDirty();
  }
}

absl::Status Admission::BeginAgain(Device& device, Op* op, Bytes more,
                                   absl::Time deadline) {
  Admission admission(device, op);
  admission.again_ = admission.unknown_ = true;
  admission.holds_pins_ = op->number != op->id;  // Those of an outer op.
  admission.AddNew(more);
  for (const Buffer* range : op->ranges) admission.AddNew(range->range_size());
  for (const ReservedChunks& chunks : op->chunks) {
    admission.AddNew(chunks.range);
  }
  std::vector<Op::Pin> lets_go, stay;
  for (size_t i = 0; i < op->pin_count; ++i) {
    const Op::Pin& pin = op->pin(i);
    // What is freed is used until the op's end, and who freed it does not see
    // that.
    (pin.buffer->word.freed() ? stay : lets_go).push_back(pin);
  }
  op->ClearPins();
  for (const Op::Pin& pin : lets_go) {
    Target& target = admission.TargetOf(
        pin.buffer, pin.buffer->base.load(std::memory_order_relaxed));
    target.write = true;
    target.allocated |= pin.allocated;
    op->AddPin(pin.buffer, false);
  }
  device.UnpinAll(op, op->stream.bit);
  for (const Op::Pin& pin : stay) op->AddPin(pin.buffer, pin.allocated);
  admission.LetGo();  // Of what is reserved, too.
  const absl::Status status = admission.Run(deadline);
  if (status.ok()) return status;
  admission.new_ranges_.clear();
  const absl::Status back = admission.Run(absl::InfiniteFuture());
  return back.ok() ? status : back;
}

absl::Status Admission::BringBack(Device& device, Buffer* buffer,
                                  const void* address) {
  Op* op = NewOp(&device);
  absl::Status status;
  {
    Admission admission(device, op);
    admission.holds_pins_ = true;
    status = admission.Add({address, 0, METS_WRITE});
    if (status.ok() && buffer->word.phase() != Phase::kResident) {
      status = admission.Run(SteadyNow() + device.options_.wait);
    }
  }
  device.EndOp(op);
  return status;
}

absl::Status Device::BeginOp(const mets_access* accesses, size_t count,
                             uint64_t expected_bytes, Op** result,
                             mets_stream stream) {
  *result = nullptr;
  Stream on;
  if (stream != nullptr) {
    METS_ASSIGN_OR_RETURN(on, streams_.Find(stream));
  }
  const char* name = TakeNextOpName();
  if (count == 0 && expected_bytes == 0) return absl::OkStatus();
  Op* op = NewOp(this);
  op->stream = on;
  if (phantoms_ != nullptr && name != nullptr) op->name = name;
  // Before the gate, which may close where a step begins.
  WatchBegin(name, accesses, count, &op->step);
  // What runs within an op must not wait: others may wait for that op. Nor what
  // a gated program's section waits for, in another thread.
  const bool counted = !options_.gated && gate_.gating() &&
                       CurrentOp() == nullptr &&
                       (expected_bytes != 0 || UsesDevice(accesses, count));
  if (counted) gate_.Enter();
  op->counted = counted;
  const uint32_t now = CoarseNowMs();
  bool is_new = expected_bytes != 0;
  bool slow = false;
  for (size_t i = 0; i < count; ++i) {
    if (accesses[i].kind == METS_NEW) {
      is_new = true;
      continue;
    }
    if (!table_->Owns(accesses[i].address)) continue;
    Buffer* buffer = table_->Find(accesses[i].address);
    if (buffer == nullptr || !TryPin(buffer)) {
      slow = true;
      break;
    }
    op->AddPin(buffer, false);
    if (!buffer->Contains(accesses[i].address)) {
      slow = true;  // Freed, and the object used again.
      break;
    }
    if (accesses[i].kind != METS_READ) buffer->MarkDirty();
    buffer->Touch(now);
  }
  if (slow || (is_new && tight())) {
    UnpinAll(op);
    absl::Status status = BeginSlow(accesses, count, expected_bytes, op);
    if (!status.ok()) {
      EndOp(op);
      return status;
    }
  } else if (op->pin_count == 0 && !is_new) {
    if (counted) gate_.Leave();
    RecycleOp(op);
    return absl::OkStatus();
  }
  if (recorder_.on()) op->recorded = RecordBegin(name, accesses, count);
  if (op->step.timed && on.bit != 0) {
    op->step.work_begins = driver_->MarkTime(on.handle);
  }
  PushCurrentOp(op);
  *result = op;
  return absl::OkStatus();
}

absl::Status Device::BeginSlow(const mets_access* accesses, size_t count,
                               uint64_t expected_bytes, Op* op) {
  Admission admission(*this, op);
  const bool reserve = tight();
  for (size_t i = 0; i < count; ++i) {
    if (accesses[i].kind == METS_NEW) {
      if (reserve) {
        admission.AddNew(Bytes(static_cast<int64_t>(accesses[i].bytes)));
      }
    } else if (table_->Owns(accesses[i].address)) {
      METS_RETURN_IF_ERROR(admission.Add(accesses[i]));
    }
  }
  if (expected_bytes == METS_UNKNOWN) {
    admission.set_unknown();
  } else if (reserve) {
    admission.AddNew(Bytes(static_cast<int64_t>(expected_bytes)));
  }
  return admission.Run(SteadyNow() + options_.wait);
}

void Device::UnpinAll(Op* op, StreamMask stream) {
  if (phantoms_ != nullptr) NoteUser(*op);
  const StreamTable::Moment now = streams_.moment();
  for (size_t i = 0; i < op->pin_count; ++i) {
    Buffer* buffer = op->pin(i).buffer;
    buffer->AddStreams(stream);
    buffer->used.store(now, std::memory_order_relaxed);
    Unpin(buffer);
  }
  op->ClearPins();
}

void Device::EndOp(Op* op, mets_stream stream) {
  RemoveCurrentOp(op);
  if (op->recorded != 0) recorder_.EndOp(op->recorded);
  const Stream on = streams_.FindOrHost(stream);
  UnpinAll(op, on.bit);
  // Programs launch work long before it runs; what a plan hides behind an op is
  // what hides behind its work.
  if (op->step.work_begins != nullptr && on.bit != 0) {
    op->step.work_ends = driver_->MarkTime(on.handle);
  }
  if (stream != nullptr && tight()) streams_.Mark();
  if (op->step.watched()) step_watch_.End(&op->step, JobTime());
  if (!op->ranges.empty() || !op->chunks.empty()) {
    absl::MutexLock lock(&mutex_);
    for (Buffer* range : op->ranges) PutIdle(range);
    for (ReservedChunks& reserved : op->chunks) PutIdle(reserved.chunks);
    op->ranges.clear();
    op->chunks.clear();
  }
  if (op->tokens > 0) ReleaseTokens(op->tokens, op->token_generation);
  if (op->counted) gate_.Leave();
  RecycleOp(op);
}

}  // namespace mets::client
