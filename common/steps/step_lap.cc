#include "common/steps/step_lap.h"

namespace mets::steps {

uint32_t StepLap::AddOld(uint64_t key, Bytes size, uint64_t identity) {
  buffers_.push_back({key, size, false, false, identity, {}, 0});
  return static_cast<uint32_t>(buffers_.size() - 1);
}

uint32_t StepLap::AddNew(uint64_t key, Bytes size, uint64_t identity,
                         const AllocationId& id, uint64_t signature) {
  buffers_.push_back({key, size, true, false, identity, id, signature});
  return static_cast<uint32_t>(buffers_.size() - 1);
}

void StepLap::AddFree(uint32_t op, uint32_t buffer) {
  buffers_[buffer].freed = true;
  frees_.push_back({op, buffer});
}

std::vector<uint32_t> StepLap::Number(RecordedStep* step) const {
  std::vector<uint32_t> logical(buffers_.size());
  absl::flat_hash_map<int64_t, std::vector<uint32_t>> ended;  // By size.
  const auto add = [&](size_t i) {
    const Buffer& buffer = buffers_[i];
    const bool persistent = !(buffer.is_new && buffer.freed);
    logical[i] = static_cast<uint32_t>(step->keys.size());
    step->program.buffers.push_back({buffer.size, persistent});
    step->keys.push_back(buffer.freed ? 0 : buffer.key);
    step->replaced.push_back(buffer.is_new != buffer.freed);
    step->at_first.push_back(buffer.identity);
    step->allocated.push_back(0);
  };
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].is_new) continue;
    add(i);
    if (buffers_[i].freed) {
      ended[buffers_[i].size.count()].push_back(logical[i]);
    }
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    if (!buffer.is_new) continue;
    const auto it =
        buffer.freed ? ended.end() : ended.find(buffer.size.count());
    if (it == ended.end() || it->second.empty()) {
      add(i);
    } else {
      logical[i] = it->second.back();
      it->second.pop_back();
      step->keys[logical[i]] = buffer.key;
      step->replaced[logical[i]] = true;
    }
    step->allocations.emplace(buffer.id, logical[i]);
    step->allocated[logical[i]] = buffer.identity;
    if (!step->program.buffers[logical[i]].persistent) {
      step->alike[{buffer.signature, buffer.size.count()}].push_back(
          logical[i]);
    }
  }
  return logical;
}

RecordedStep StepLap::Finish(uint64_t signature, absl::Duration duration,
                             const std::vector<absl::Duration>& starts,
                             const std::vector<absl::Duration>& busy) const {
  RecordedStep step;
  step.program.signature = signature;
  step.program.duration = duration;
  const std::vector<uint32_t> logical = Number(&step);
  std::vector<StepOp>& ops = step.program.ops;
  ops.resize(starts.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    ops[i].start = starts[i];
    ops[i].busy = busy[i];
  }
  // The op that allocates a logical buffer.
  std::vector<uint32_t> replaced_by(step.keys.size(), UINT32_MAX);
  for (const auto& [op, access] : accesses_) {
    if (access.kind == AccessKind::kNew) {
      replaced_by[logical[access.buffer]] = op;
    }
  }
  for (const auto& [op, access] : accesses_) {
    const uint32_t buffer = logical[access.buffer];
    const bool replaced =
        !buffers_[access.buffer].is_new && op > replaced_by[buffer];
    ops[op].accesses.push_back(
        {buffer, replaced ? AccessKind::kReplaced : access.kind});
  }
  for (const OpFree& free : frees_) {
    ops[free.op].frees.push_back(logical[free.buffer]);
  }
  return step;
}

}  // namespace mets::steps
