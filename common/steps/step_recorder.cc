#include "common/steps/step_recorder.h"

#include <algorithm>
#include <utility>

#include "common/steps/step_content.h"

namespace mets::steps {

uint64_t StepRecorder::SignatureOf(uint64_t kind, const Touch* touches,
                                   size_t count) const {
  uint64_t signature = kind ^ 1;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t size = SizeOf(touches[i].key).count();
    signature = MixBits(signature ^ (size << 1 | touches[i].write));
  }
  return signature | 1;
}

OpId StepRecorder::OpBegin(absl::Duration now, uint64_t signature,
                           const Touch* touches, size_t count) {
  const uint64_t before = point_.signature;
  point_ = detector_.Observe(signature, live_bytes_);
  ended_ = false;
  if (point_.boundary) {
    if (point_.whole && before == point_.signature) EndLap(now);
    if (before != point_.signature) Switch(point_.signature);
    BeginLap(now, signature);
  } else if (before != point_.signature) {
    Switch(0);
  }
  if (point_.signature == 0 || starts_.size() >= StepDetector::kMostOps) {
    lap_straight_ = false;
    recording_.reset();
    return OpId();
  }
  const OpId op{lap_, static_cast<uint32_t>(starts_.size()), point_.position};
  starts_.push_back(now - lap_start_);
  busy_.push_back(absl::InfiniteDuration());  // Until it ends.
  uint64_t flow = signature;
  for (size_t i = 0; i < count; ++i) {
    const auto it = live_.find(touches[i].key);
    if (it != live_.end()) flow = MixBits(flow ^ it->second.identity);
  }
  flows_.push_back(flow);
  if (recording_.has_value()) {
    for (size_t i = 0; i < count; ++i) {
      Touched(op.index, touches[i].key, touches[i].write);
    }
    if (recording_->accesses() > kMostAccesses) recording_.reset();
  }
  return op;
}

void StepRecorder::OpEnd(OpId op, absl::Duration now) {
  if (op.lap != lap_ || op.index >= starts_.size()) return;
  busy_[op.index] = now - lap_start_ - starts_[op.index];
}

uint32_t StepRecorder::InLap(uint64_t key, Live* live) {
  if (live->lap != lap_) {
    live->lap = lap_;
    live->op = kNone;
    live->in_lap = recording_->AddOld(key, live->size, live->identity);
  }
  return live->in_lap;
}

void StepRecorder::Touched(uint32_t op, uint64_t key, bool write) {
  const auto it = live_.find(key);
  if (it == live_.end()) return;
  Live& live = it->second;
  const uint32_t buffer = InLap(key, &live);
  if (live.op == op && !write) return;
  live.op = op;
  recording_->AddAccess(op, buffer,
                        write ? AccessKind::kWrite : AccessKind::kRead);
}

void StepRecorder::Alloc(uint64_t key, Bytes size, OpId op,
                         uint64_t signature) {
  const auto [it, is_new] = live_.try_emplace(key);
  if (!is_new) return;
  Live& live = it->second;
  live.size = size;
  live.identity = MixBits(key);
  live_bytes_ += size;
  lap_peak_ = std::max(lap_peak_, live_bytes_);
  if (current_ == nullptr && !recording_.has_value()) return;
  const bool known = op.lap == lap_ && op.index < flows_.size();
  AllocationId id{known ? flows_[op.index] : signature, size.count(), 0};
  id.ordinal = allocated_[{id.flow, id.bytes}]++;
  live.identity = IdentityOf(id);
  if (current_ != nullptr) Name(key, Recognise(id, signature), &live);
  if (!recording_.has_value()) return;
  if (starts_.empty() || recording_->buffers() > kMostAccesses) {
    recording_.reset();
    return;
  }
  live.lap = lap_;
  live.in_lap = recording_->AddNew(key, size, live.identity, id, signature);
  live.op = known ? op.index : static_cast<uint32_t>(starts_.size() - 1);
  recording_->AddAccess(live.op, live.in_lap, AccessKind::kNew);
}

void StepRecorder::Name(uint64_t key, uint32_t logical, Live* live) {
  live->logical = logical;
  if (logical == kNone) return;
  live->identity = current_->allocated[logical];
  const uint64_t before = std::exchange(current_->keys[logical], key);
  const auto other = live_.find(before);
  if (other == live_.end() || current_->replaced[logical]) return;
  other->second.logical = kNone;  // It was taken for the one that this is.
}

uint32_t StepRecorder::Recognise(const AllocationId& id,
                                 uint64_t signature) const {
  const auto it = current_->allocations.find(id);
  if (it != current_->allocations.end()) return it->second;
  const auto alike = current_->alike.find({signature, id.bytes});
  if (alike == current_->alike.end()) return kNone;
  for (uint32_t logical : alike->second) {
    if (current_->keys[logical] == 0) return logical;
  }
  return kNone;
}

void StepRecorder::Free(uint64_t key) {
  const auto it = live_.find(key);
  if (it == live_.end()) return;
  Live& live = it->second;
  live_bytes_ -= live.size;
  if (recording_.has_value() && !starts_.empty()) {
    recording_->AddFree(static_cast<uint32_t>(starts_.size() - 1),
                        InLap(key, &live));
  }
  if (current_ != nullptr && live.logical != kNone) {
    const uint32_t logical = live.logical;
    if (current_->keys[logical] == key) current_->keys[logical] = 0;
    missing_ += current_->program.buffers[logical].persistent &&
                !current_->replaced[logical];
  }
  live_.erase(it);
}

bool StepRecorder::Moved(uint64_t first_op) {
  const uint64_t before = std::exchange(first_op_, first_op);
  return current_ != nullptr && lap_straight_ && first_op == before &&
         first_op != current_->first_op;
}

void StepRecorder::BeginLap(absl::Duration now, uint64_t first_op) {
  ++lap_;
  lap_start_ = now;
  lap_first_live_ = lap_peak_ = live_bytes_;
  lap_straight_ = point_.position == 0;
  starts_.clear();
  busy_.clear();
  flows_.clear();
  allocated_.clear();
  recording_.reset();
  if (Moved(first_op) || Stale()) Detach();
  if (lap_straight_ && (current_ == nullptr || Better())) recording_.emplace();
  for (auto& [key, live] : live_) {
    live.identity = current_ == nullptr || live.logical == kNone
                        ? MixBits(key)
                        : current_->at_first[live.logical];
  }
}

void StepRecorder::EndLap(absl::Duration now) {
  const absl::Duration duration = now - lap_start_;
  for (size_t i = 0; i < busy_.size(); ++i) {
    if (busy_[i] == absl::InfiniteDuration()) busy_[i] = duration - starts_[i];
  }
  if (recording_.has_value() && Lopsided()) {
    recording_.reset();
  } else if (recording_.has_value()) {
    RecordedStep step =
        recording_->Finish(point_.signature, duration, starts_, busy_);
    recording_.reset();
    step.first_op = first_op_;
    step.first_live = lap_first_live_;
    step.rise = lap_peak_ - lap_first_live_;
    Keep(std::move(step));
    Summarize();
    ended_ = true;
  } else if (current_ != nullptr && lap_straight_) {
    const Bytes apart = lap_first_live_ - current_->first_live;
    if (apart * 8 > current_->rise || apart * -8 > current_->rise) {
      Detach();  // It begins elsewhere, or other things live.
    } else {
      ended_ = starts_.size() == current_->program.ops.size();
      if (ended_ && current_->timings == 0) TakeTimes(duration);
    }
  }
  if (current_ == nullptr) return;
  summary_.duration = duration;
  summary_.persistent_live = lap_first_live_;
  summary_.peak_live = lap_peak_;
}

bool StepRecorder::Better() const {
  return (current_->first_live - live_bytes_) * 32 > current_->rise;
}

bool StepRecorder::Lopsided() {
  constexpr int kPatience = 4;
  const Bytes apart = live_bytes_ - lap_first_live_;
  const Bytes most = lap_peak_ - lap_first_live_;
  if ((apart * 32 <= most && apart * -32 <= most) || lopsided_ >= kPatience) {
    lopsided_ = 0;
    return false;
  }
  ++lopsided_;
  return true;
}

void StepRecorder::TakeTimes(absl::Duration duration) {
  StepProgram& program = current_->program;
  if (duration >= program.duration) return;
  program.duration = duration;
  for (size_t i = 0; i < starts_.size(); ++i) {
    program.ops[i].start = starts_[i];
    program.ops[i].busy = busy_[i];
  }
}

bool StepRecorder::Times(OpId op, bool again) const {
  if (recording_.has_value()) return true;
  if (current_ == nullptr || !lap_straight_) return false;
  if (current_->timings == 0) return true;
  return again && current_->timings < kTimings &&
         op.index % kParts == op.lap % kParts;
}

void StepRecorder::AddWorkTimes(const std::vector<absl::Duration>& busy) {
  if (!ended_ || current_ == nullptr ||
      busy.size() != current_->program.ops.size()) {
    return;
  }
  StepProgram& program = current_->program;
  program.duration = absl::ZeroDuration();
  for (size_t i = 0; i < busy.size(); ++i) {
    StepOp& op = program.ops[i];
    const absl::Duration least =
        current_->timings == 0 ? absl::InfiniteDuration() : op.busy;
    op.start = program.duration;
    op.busy = std::min(least, busy[i]);
    if (op.busy == absl::InfiniteDuration()) op.busy = absl::ZeroDuration();
    program.duration += op.busy;
  }
  ++current_->timings;
  Summarize();
}

void StepRecorder::Switch(uint64_t signature) {
  if (current_ != nullptr) {
    for (auto& [key, live] : live_) live.logical = kNone;
  }
  current_ = nullptr;
  summary_ = StepSummary();
  if (signature == 0) {
    recording_.reset();
    return;
  }
  const auto it =
      std::find_if(kept_.begin(), kept_.end(), [signature](const auto& step) {
        return step->program.signature == signature;
      });
  if (it == kept_.end()) return;
  std::rotate(it, it + 1, kept_.end());
  current_ = kept_.back().get();
  Adopt();
  if (Stale()) {
    Detach();
  } else {
    Summarize();
  }
}

void StepRecorder::Adopt() {
  ++version_;
  persistent_ = missing_ = 0;
  for (uint32_t b = 0; b < current_->keys.size(); ++b) {
    const bool stays =
        current_->program.buffers[b].persistent && !current_->replaced[b];
    persistent_ += stays;
    const auto it = live_.find(current_->keys[b]);
    if (it != live_.end()) {
      it->second.logical = b;
    } else {
      current_->keys[b] = 0;
      missing_ += stays;
    }
  }
}

bool StepRecorder::Stale() const {
  return current_ != nullptr && missing_ > 2 && missing_ > persistent_ / 8;
}

void StepRecorder::Detach() {
  for (auto& [key, live] : live_) live.logical = kNone;
  kept_.erase(std::remove_if(
                  kept_.begin(), kept_.end(),
                  [this](const auto& step) { return step.get() == current_; }),
              kept_.end());
  current_ = nullptr;
  summary_ = StepSummary();
}

void StepRecorder::Keep(RecordedStep step) {
  step.number = ++last_number_;
  if (current_ != nullptr) Detach();
  if (kept_.size() >= kKept) kept_.erase(kept_.begin());
  kept_.push_back(std::make_unique<RecordedStep>(std::move(step)));
  current_ = kept_.back().get();
  Adopt();
}

void StepRecorder::Summarize() {
  const StepProgram& program = current_->program;
  summary_.signature = program.signature;
  summary_.duration = program.duration;
  Bytes working_set, largest;
  for (const StepBuffer& buffer : program.buffers) working_set += buffer.size;
  std::vector<uint32_t> seen(program.buffers.size(), kNone);
  for (uint32_t op = 0; op < program.ops.size(); ++op) {
    Bytes need;
    for (const Access& access : program.ops[op].accesses) {
      if (std::exchange(seen[access.buffer], op) == op) continue;
      need += program.buffers[access.buffer].size;
    }
    largest = std::max(largest, need);
  }
  summary_.working_set = working_set;
  summary_.largest_op = largest;
}

std::optional<uint32_t> StepRecorder::LogicalOf(uint64_t key) const {
  const auto it = live_.find(key);
  if (current_ == nullptr || it == live_.end() || it->second.logical == kNone) {
    return std::nullopt;
  }
  return it->second.logical;
}

uint64_t StepRecorder::KeyOf(uint32_t logical) const {
  if (current_ == nullptr || logical >= current_->keys.size()) return 0;
  return current_->keys[logical];
}

}  // namespace mets::steps
