#include "daemon/sim/job_program.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/steps/step_content.h"

namespace mets::sim {
namespace {

using steps::AccessKind;
using trace::Event;
using trace::EventKind;

// SINGA's access recorder wrote its buffer out behind every so many events;
// that time was not the job's.
constexpr size_t kSingaFlush = 2000;
constexpr absl::Duration kFlushTakes = absl::Milliseconds(100);

class Builder {
 public:
  Builder(const trace::Trace& trace, const ProgramOptions& options)
      : trace_(trace), options_(options) {
    for (const Event& event : trace.events) {
      has_ops_ |= event.kind == EventKind::kBegin;
      has_accesses_ |=
          event.kind == EventKind::kRead || event.kind == EventKind::kWrite;
    }
  }

  absl::StatusOr<JobProgram> Build() {
    absl::Duration skipped, before;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (!has_ops_ && i > 0 && i % kSingaFlush == 0 &&
          event.time - before > kFlushTakes) {
        skipped += event.time - before;
      }
      before = event.time;
      now_ = absl::ToDoubleSeconds(event.time - skipped);
      if (!IsOfFree(i)) Take(event);
    }
    FinishTimes();
    if (program_.ops.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "trace '", trace_.job, "' has no op that uses a buffer of at least ",
          FormatBytes(options_.threshold)));
    }
    program_.name = trace_.job;
    return std::move(program_);
  }

 private:
  // SINGA's recorder notes a write where a block's address is asked for, which
  // happens behind its last use, to free it.
  bool IsOfFree(size_t i) const {
    if (has_ops_ || i + 1 == trace_.events.size()) return false;
    const Event& event = trace_.events[i];
    const Event& next = trace_.events[i + 1];
    return event.kind == EventKind::kWrite && next.kind == EventKind::kFree &&
           next.id == event.id;
  }

  void Take(const Event& event) {
    switch (event.kind) {
      case EventKind::kBegin:
        BeginOp();
        program_.ops.back().kind = steps::KindOf(trace_.names[event.name]);
        open_[event.id] = program_.ops.size() - 1;
        break;
      case EventKind::kEnd:
        EndOp(event.id);
        break;
      case EventKind::kAlloc:
        Alloc(event);
        break;
      case EventKind::kFree:
        Free(event);
        break;
      case EventKind::kRead:
        Access(event.id, AccessKind::kRead);
        break;
      case EventKind::kWrite:
        Access(event.id, AccessKind::kWrite);
        break;
    }
  }

  void BeginOp() {
    program_.ops.emplace_back();
    starts_.push_back(now_);
    ends_.push_back(now_);
    wrote_ = false;
  }

  void EndOp(uint64_t id) {
    auto it = open_.find(id);
    if (it == open_.end()) return;
    ends_[it->second] = now_;
    open_.erase(it);
  }

  // Without recorded ops, one ends where a read follows a write.
  void Access(uint64_t block, AccessKind kind) {
    auto it = live_.find(block);
    if (it == live_.end()) return;  // Below the threshold.
    const bool reads = kind == AccessKind::kRead;
    if (program_.ops.empty() || (!has_ops_ && reads && wrote_)) BeginOp();
    if (!has_ops_) wrote_ |= !reads;
    if (fresh_.erase(block) > 0) kind = AccessKind::kNew;
    AddAccess(it->second, kind);
  }

  void AddAccess(uint32_t buffer, AccessKind kind) {
    JobOp& op = program_.ops.back();
    for (steps::Access& access : op.accesses) {
      if (access.buffer != buffer) continue;
      if (access.kind == AccessKind::kRead) access.kind = kind;
      return;
    }
    op.accesses.push_back({buffer, kind});
  }

  void Alloc(const Event& event) {
    live_bytes_ += event.bytes;
    program_.peak = std::max(program_.peak, live_bytes_);
    if (event.bytes < options_.threshold) {
      small_bytes_ += event.bytes;
      program_.small_peak = std::max(program_.small_peak, small_bytes_);
      return;
    }
    live_[event.id] = static_cast<uint32_t>(program_.buffers.size());
    program_.buffers.push_back(event.bytes);
    fresh_.insert(event.id);
    if (has_ops_ || !has_accesses_) {
      // Outside of ops, each allocation is its own.
      if (!has_accesses_ || open_.empty()) BeginOp();
      Access(event.id, AccessKind::kNew);
    }
  }

  void Free(const Event& event) {
    live_bytes_ -= event.bytes;
    auto it = live_.find(event.id);
    if (it == live_.end()) {
      small_bytes_ -= event.bytes;
      return;
    }
    if (!has_accesses_) {
      BeginOp();
      AddAccess(it->second, AccessKind::kRead);
    }
    // One that nothing has used was never there.
    if (fresh_.erase(event.id) == 0) {
      program_.ops.back().frees.push_back(it->second);
    }
    live_.erase(it);
  }

  void FinishTimes() {
    double clock = 0;
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      JobOp& op = program_.ops[i];
      if (!has_ops_) ends_[i] = i + 1 < starts_.size() ? starts_[i + 1] : now_;
      const double start = std::max(clock, starts_[i]);
      op.gap = (start - clock) * options_.time_scale;
      op.busy = std::max(0.0, ends_[i] - start) * options_.time_scale;
      clock = std::max(start, ends_[i]);
      Bytes touched;
      for (const steps::Access& access : op.accesses) {
        touched += program_.buffers[access.buffer];
      }
      if (options_.speedup > 0) Accelerate(touched, &op);
      program_.seconds += op.gap + op.busy;
    }
  }

  void Accelerate(Bytes touched, JobOp* op) const {
    op->gap /= options_.speedup;
    if (op->busy == 0) return;  // No op: an allocation outside of any.
    op->busy = std::max(
        {op->busy / options_.speedup,
         static_cast<double>(touched.count()) / options_.memory_bandwidth,
         options_.launch});
  }

  const trace::Trace& trace_;
  const ProgramOptions& options_;
  bool has_ops_ = false, has_accesses_ = false;
  JobProgram program_;
  std::vector<double> starts_, ends_;
  absl::flat_hash_map<uint64_t, size_t> open_;    // Ops that run.
  absl::flat_hash_map<uint64_t, uint32_t> live_;  // Blocks that are buffers.
  absl::flat_hash_set<uint64_t> fresh_;           // Not used yet.
  Bytes live_bytes_, small_bytes_;
  bool wrote_ = false;
  double now_ = 0;
};

}  // namespace

absl::StatusOr<JobProgram> MakeJobProgram(const trace::Trace& trace,
                                          const ProgramOptions& options) {
  return Builder(trace, options).Build();
}

}  // namespace mets::sim
