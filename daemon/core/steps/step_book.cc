#include "daemon/core/steps/step_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mets::core {
namespace {

constexpr absl::Duration kLongestStep = absl::Hours(24);

bool Plausible(absl::Duration time) {
  return time >= absl::ZeroDuration() && time <= kLongestStep;
}

}  // namespace

std::string StepBook::PartFault(const StepSeen& seen) const {
  const steps::StepProgram& part = seen.part;
  if (part.signature == 0) return "sent a step without a signature";
  if (!seen.first && (complete_ || part.signature != program_.signature)) {
    return "sent a part of a step without its first part";
  }
  if (!Plausible(part.duration)) return "sent a step of impossible duration";
  const size_t ops = part.ops.size() + (seen.first ? 0 : program_.ops.size());
  const size_t buffers =
      part.buffers.size() + (seen.first ? 0 : program_.buffers.size());
  if (ops > kMostOps || buffers > kMostBuffers) {
    return absl::StrCat("sent a step of ", ops, " ops and ", buffers,
                        " buffers");
  }
  for (const steps::StepBuffer& buffer : part.buffers) {
    if (buffer.size <= Bytes() || buffer.size > kLargestBuffer) {
      return "sent a step with a buffer of impossible size";
    }
  }
  size_t accesses = seen.first ? 0 : accesses_;
  absl::Duration before = seen.first || program_.ops.empty()
                              ? absl::ZeroDuration()
                              : program_.ops.back().start;
  for (const steps::StepOp& op : part.ops) {
    accesses += op.accesses.size() + op.frees.size();
    if (!Plausible(op.start) || !Plausible(op.busy) || op.start < before) {
      return "sent a step with an op at an impossible time";
    }
    before = op.start;
  }
  if (accesses > kMostAccesses + kMostBuffers) {
    return absl::StrCat("sent a step of ", accesses, " accesses and frees");
  }
  return "";
}

std::string StepBook::IndexFault() const {
  const size_t most = program_.buffers.size();
  for (const steps::StepOp& op : program_.ops) {
    for (const steps::Access& access : op.accesses) {
      if (access.buffer >= most) return "sent a step with an unknown buffer";
    }
    for (uint32_t buffer : op.frees) {
      if (buffer >= most) return "sent a step that frees an unknown buffer";
    }
  }
  return "";
}

std::string StepBook::Take(const StepSeen& seen) {
  std::string fault = PartFault(seen);
  if (!fault.empty()) return fault;
  if (seen.first) {
    program_ = seen.part;
    complete_ = false;
    accesses_ = 0;
  } else {
    program_.buffers.insert(program_.buffers.end(), seen.part.buffers.begin(),
                            seen.part.buffers.end());
    program_.ops.insert(program_.ops.end(), seen.part.ops.begin(),
                        seen.part.ops.end());
  }
  for (const steps::StepOp& op : seen.part.ops) {
    accesses_ += op.accesses.size() + op.frees.size();
  }
  if (!seen.last) return "";
  fault = IndexFault();
  if (!fault.empty()) return fault;
  IndexUses();
  complete_ = true;
  ++version_;
  return "";
}

void StepBook::IndexUses() {
  first_use_.assign(program_.buffers.size() + 1, 0);
  for (const steps::StepOp& op : program_.ops) {
    for (const steps::Access& access : op.accesses) {
      ++first_use_[access.buffer + 1];
    }
  }
  for (size_t b = 1; b < first_use_.size(); ++b) {
    first_use_[b] += first_use_[b - 1];
  }
  use_starts_.resize(first_use_.back());
  std::vector<uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  for (const steps::StepOp& op : program_.ops) {
    for (const steps::Access& access : op.accesses) {
      use_starts_[next[access.buffer]++] = op.start;
    }
  }
}

std::string StepBook::Take(absl::Time now, const StepProgress& progress) {
  if (progress.steps < 0 || !Plausible(progress.duration) ||
      !Plausible(progress.since_begin)) {
    return "is at an impossible place of its step";
  }
  signature_ = progress.signature;
  steps_ = progress.steps;
  duration_ =
      progress.signature == 0 ? absl::ZeroDuration() : progress.duration;
  since_begin_ = progress.since_begin;
  told_ = now;
  return "";
}

void StepBook::Forget() {
  const int64_t steps = steps_;
  const uint64_t version = version_;
  *this = StepBook();
  steps_ = steps;
  version_ = version;
}

std::optional<Bytes> StepBook::Beside() const {
  if (!between_.has_value()) return std::nullopt;
  Bytes persistent;
  for (const steps::StepBuffer& buffer : program_.buffers) {
    if (buffer.persistent) persistent += buffer.size;
  }
  return std::max(Bytes(), *between_ - persistent);
}

Bytes StepBook::Peak(Bytes unit) const {
  const auto size = [&](uint32_t buffer) {
    return program_.buffers[buffer].size.RoundUpTo(unit);
  };
  const std::vector<bool> within = steps::AllocatedWithin(program_);
  Bytes live, peak;
  for (uint32_t b = 0; b < program_.buffers.size(); ++b) {
    if (program_.buffers[b].persistent) live += size(b);
  }
  for (const steps::StepOp& op : program_.ops) {
    for (const steps::Access& access : op.accesses) {
      if (access.kind == steps::AccessKind::kNew && within[access.buffer]) {
        live += size(access.buffer);
      }
    }
    peak = std::max(peak, live);
    for (uint32_t b : op.frees) {
      if (within[b]) live -= size(b);
    }
  }
  return peak;
}

absl::Duration StepBook::Phase(absl::Time now) const {
  const absl::Duration since_told = now - told_;
  if (since_told > 2 * duration_ + absl::Seconds(5)) {
    return absl::InfiniteDuration();
  }
  // The next repetition is due.
  if (since_begin_ >= duration_) return absl::ZeroDuration();
  absl::Duration phase;
  absl::IDivDuration(since_begin_ + since_told, duration_, &phase);
  return phase;
}

absl::Time StepBook::NextUse(uint32_t logical, absl::Time now) const {
  if (!known() || logical == 0 || logical >= first_use_.size()) {
    return absl::InfiniteFuture();
  }
  const absl::Duration phase = Phase(now);
  const auto begin = use_starts_.begin() + first_use_[logical - 1];
  const auto end = use_starts_.begin() + first_use_[logical];
  if (begin == end || phase == absl::InfiniteDuration()) {
    return absl::InfiniteFuture();
  }
  const auto next = std::lower_bound(begin, end, phase);
  if (next != end) return now + (*next - phase);
  return now + (std::max(duration_, program_.duration) - phase) + *begin;
}

}  // namespace mets::core
