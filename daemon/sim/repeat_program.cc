#include "daemon/sim/repeat_program.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace mets::sim {
namespace {

using steps::Access;
using steps::AccessKind;

constexpr uint32_t kNone = UINT32_MAX;

class Repeater {
 public:
  explicit Repeater(const JobProgram& program)
      : program_(program),
        result_(program),
        partner_(program.buffers.size(), kNone),
        now_(program.buffers.size()) {
    for (uint32_t b = 0; b < now_.size(); ++b) now_[b] = b;
    FindPartners();
  }

  void Repeat() {
    std::vector<uint32_t> next(now_.size(), kNone);
    for (uint32_t b : first_) {
      if (partner_[b] != kNone) next[b] = now_[partner_[b]];
    }
    for (uint32_t b : unmatched_) {
      result_.ops.back().frees.push_back(now_[b]);
    }
    now_ = std::move(next);
    result_.repeats.push_back(result_.ops.size());
    for (uint32_t b : first_) {
      if (partner_[b] != kNone) continue;
      JobOp op;
      op.accesses = {{Buffer(b), AccessKind::kNew}};
      result_.ops.push_back(std::move(op));
    }
    for (size_t i = begin_; i < program_.ops.size(); ++i) {
      JobOp op = program_.ops[i];
      for (steps::Access& access : op.accesses) {
        access.buffer = Buffer(access.buffer);
      }
      for (uint32_t& b : op.frees) b = Buffer(b);
      result_.ops.push_back(std::move(op));
    }
    result_.seconds += program_.seconds;
    result_.input_seconds += program_.input_seconds;
  }

  JobProgram Take() { return std::move(result_); }

 private:
  void FindPartners() {
    while (begin_ < program_.ops.size() &&
           program_.ops[begin_].only_allocates() &&
           program_.ops[begin_].frees.empty()) {
      first_.push_back(program_.ops[begin_++].accesses[0].buffer);
    }
    const auto is_first = [&](uint32_t b) {
      return std::find(first_.begin(), first_.end(), b) != first_.end();
    };
    // Those that nothing uses are never there.
    std::vector<bool> taken(program_.buffers.size(), true);
    for (const JobOp& op : program_.ops) {
      for (const Access& access : op.accesses) taken[access.buffer] = false;
    }
    std::vector<uint32_t> replaced;  // Of first_, first freed first.
    for (const JobOp& op : program_.ops) {
      for (uint32_t b : op.frees) {
        taken[b] = true;
        if (is_first(b)) replaced.push_back(b);
      }
    }
    for (uint32_t b : first_) {
      if (taken[b]) continue;
      partner_[b] = b;
      taken[b] = true;
    }
    std::map<Bytes, std::vector<uint32_t>> left;  // At the end, by size.
    for (uint32_t b = 0; b < taken.size(); ++b) {
      if (!taken[b]) left[program_.buffers[b]].push_back(b);
    }
    for (uint32_t b : replaced) {
      std::vector<uint32_t>& same = left[program_.buffers[b]];
      if (same.empty()) continue;
      partner_[b] = same.front();
      same.erase(same.begin());
    }
    for (const auto& [size, buffers] : left) {
      unmatched_.insert(unmatched_.end(), buffers.begin(), buffers.end());
    }
  }

  uint32_t Buffer(uint32_t b) {
    if (now_[b] == kNone) {
      now_[b] = static_cast<uint32_t>(result_.buffers.size());
      result_.buffers.push_back(program_.buffers[b]);
    }
    return now_[b];
  }

  const JobProgram& program_;
  JobProgram result_;
  size_t begin_ = 0;                 // The first op that is repeated.
  std::vector<uint32_t> first_;      // Live before it.
  std::vector<uint32_t> partner_;    // Of these: what it is at the end.
  std::vector<uint32_t> unmatched_;  // Live at the end, nobody's partner.
  std::vector<uint32_t> now_;        // In the result, this time.
};

}  // namespace

JobProgram RepeatProgram(const JobProgram& program, int times) {
  METS_CHECK(times >= 1) << times << " times";
  Repeater repeater(program);
  for (int i = 1; i < times; ++i) repeater.Repeat();
  return repeater.Take();
}

}  // namespace mets::sim
